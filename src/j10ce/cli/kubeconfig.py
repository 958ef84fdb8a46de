"""kubeconfig files, as far as this command needs them: where the API is, whom to trust, and how to say who asks."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from j10ce.errors import Finding, Invalid, Unsupported


class Account(NamedTuple):
    """A way to reach a control plane. `server` may list several addresses, separated by commas."""

    server: str
    token: str = ""
    ca: str = ""  # PEM; empty: the system's authorities
    certificate: tuple[str, str] | None = None  # of the caller, and its key: files, or PEM


def find(local: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Where a kubeconfig may be, best first. `local` is the one that `up` writes on this host.

    `up` goes before KUBECONFIG: who runs it means this host, also in a shell that is set up for another cluster.
    """
    yield local
    yield from (Path(path) for path in environ.get("KUBECONFIG", "").split(":") if path)
    if home := environ.get("HOME"):
        yield Path(home, ".j10ce", "kubeconfig")
        yield Path(home, ".kube", "config")


def read(path: Path) -> Account:
    """What the current context of a file says; raises Invalid, and OSError where it cannot be read."""
    import yaml

    try:
        told = yaml.safe_load(path.read_text())
        context = _named(told, "contexts", str(told["current-context"]))["context"]
        cluster = _named(told, "clusters", str(context["cluster"]))["cluster"]
        user = _named(told, "users", str(context["user"]))["user"] if context.get("user") else {}
        if user.get("exec") or user.get("auth-provider"):
            raise Unsupported(f"programs that log in, in {path}", needs="a token or a client certificate in it")
        server, password = _address(str(cluster["server"]))
        token = _token(path, user) or password
        return Account(server, token, _authority(path, cluster), _certificate(path, user))
    except KeyError as e:
        raise Invalid([Finding(str(path), None, f"has no {e.args[0]}", "write it anew")], "kubeconfig") from None
    except (yaml.YAMLError, TypeError, NotBase64, UnicodeDecodeError) as e:
        raise Invalid([Finding(str(path), None, " ".join(str(e).split()))], "kubeconfig") from None


def _address(server: str) -> tuple[str, str]:
    """An address without the name and password that it may carry, and the password."""
    scheme, _, rest = server.partition("://")
    account, _, host = rest.rpartition("@")
    return (f"{scheme}://{host}", unquote(account.partition(":")[2])) if account else (server, "")


def _named(told: Mapping[str, Any], group: str, name: str) -> Mapping[str, Any]:
    for one in told[group]:
        if one.get("name") == name:
            found: Mapping[str, Any] = one
            return found
    raise KeyError(f"{name} among its {group}")


def _token(path: Path, user: Mapping[str, Any]) -> str:
    if file := user.get("tokenFile"):
        return Path(path.parent, file).read_text().strip()
    return str(user.get("token") or "")


def _authority(path: Path, cluster: Mapping[str, Any]) -> str:
    if data := cluster.get("certificate-authority-data"):
        return b64decode(data).decode()
    file = cluster.get("certificate-authority")
    return Path(path.parent, file).read_text() if file else ""


def _certificate(path: Path, user: Mapping[str, Any]) -> tuple[str, str] | None:
    if (data := user.get("client-certificate-data")) and (secret := user.get("client-key-data")):
        return b64decode(data).decode(), b64decode(secret).decode()
    cert, key = user.get("client-certificate"), user.get("client-key")
    return (str(Path(path.parent, cert)), str(Path(path.parent, key))) if cert and key else None
