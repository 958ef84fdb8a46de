"""kubeconfig files, as far as this command needs them: where they are, and what their current context says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from j10ce.kube.kubeconfig import read_kubeconfig


class Account(NamedTuple):
    """A way to reach a control plane. `server` may list several addresses, separated by commas."""

    server: str
    token: str = ""
    ca: str = ""  # PEM; empty: the system's authorities
    certificate: tuple[str, str] | None = None  # of the caller, and its key: PEM


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
    """What the current context of a file says; raises Invalid, Unsupported, Denied where a credential plugin fails, and
    OSError where it cannot be read."""
    context = read_kubeconfig(path)
    server, password = _address(context.server)
    if context.plugin:
        given = context.plugin.credential()
        context = context._replace(token=given.token, certificate=given.certificate, key=given.key)
    token = context.token_file.read_text().strip() if context.token_file else context.token
    certificate = (context.certificate, context.key) if context.certificate and context.key else None
    return Account(server, token or password, context.ca, certificate)


def _address(server: str) -> tuple[str, str]:
    """An address without the name and password that it may carry, and the password."""
    scheme, _, rest = server.partition("://")
    account, _, host = rest.rpartition("@")
    return (f"{scheme}://{host}", unquote(account.partition(":")[2])) if account else (server, "")
