"""kubeconfig files: where the API server is, whom to trust, and how to say who asks.

What stands in the file, in files that it names, and what a credential plugin that it names answers when it is asked.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec.yaml

from j10ce.errors import Finding, Invalid, Unsupported
from j10ce.kube.exec_credential import ExecPlugin, plugin_of

INSTEAD: Final = "a token (`kubectl create token ACCOUNT`) or a client certificate in the kubeconfig"
REFUSED: Final = {
    "auth-provider": "auth providers",
    "username": "passwords",
    "as": "impersonation",
}


class Kubeconfig(NamedTuple):
    """What one context says. Certificates and keys are PEM; empty where there are none."""

    server: str
    ca: str = ""  # empty: the system's authorities
    verify: bool = True
    server_name: str = ""  # that the server's certificate has to be for, where it is not the host of `server`
    token: str = ""
    token_file: Path | None = None  # read again and again: tokens rotate
    certificate: str = ""
    key: str = ""
    plugin: ExecPlugin | None = None  # who knows token or certificate, where the file does not


def once() -> float:
    """The clock of who asks a plugin once."""
    return 0.0


def read_kubeconfig(path: Path, context: str = "", wall: Callable[[], float] = once) -> Kubeconfig:
    """`context`: another than the current one. Raises Invalid, Unsupported, and OSError for an unreadable file."""
    try:
        return _of(_Section(str(path), path.parent, _loaded(path)), context, wall)
    except (NotBase64, UnicodeDecodeError) as e:
        raise Invalid([Finding(str(path), None, f"not base64 of PEM: {e}")], "kubeconfig") from None


def _loaded(path: Path) -> Any:
    try:
        return msgspec.yaml.decode(path.read_bytes())
    except ImportError:
        raise Unsupported("kubeconfig files", needs="PyYAML (pip install 'j10ce-qos[cli]')") from None
    except msgspec.MsgspecError as e:
        raise Invalid([Finding(str(path), None, f"not YAML: {' '.join(str(e).split())}")], "kubeconfig") from None


class _Section(NamedTuple):
    """A part of the file, and where it is."""

    where: str
    folder: Path
    value: Any

    def part(self, key: str) -> _Section:
        if not isinstance(self.value, Mapping) or key not in self.value:
            raise Invalid([Finding(self.where, None, f"has no {key}", "write it anew")], "kubeconfig")
        return self._replace(where=f"{self.where}: {key}", value=self.value[key])

    def named(self, group: str, name: str) -> _Section:
        """The entry of that name, as `kubectl config` keeps them: `clusters: [{name: …, cluster: …}]`."""
        listed = self.part(group)
        for entry in listed.value if isinstance(listed.value, list) else ():
            if isinstance(entry, Mapping) and entry.get("name") == name:
                return listed._replace(value=entry).part(group.removesuffix("s"))
        raise Invalid([Finding(listed.where, name, "not among them", "choose another one")], "kubeconfig")

    def text(self, key: str) -> str:
        text = self.value.get(key) if isinstance(self.value, Mapping) else None
        return "" if text is None else str(text)

    def pem(self, key: str) -> str:
        """Out of the file itself, or out of a file beside it."""
        if data := self.text(f"{key}-data"):
            return b64decode(data).decode()
        file = self.text(key)
        return (self.folder / file).read_text() if file else ""


def _of(file: _Section, context: str, wall: Callable[[], float]) -> Kubeconfig:
    chosen = file.named("contexts", context or str(file.part("current-context").value))
    cluster = file.named("clusters", str(chosen.part("cluster").value))
    user = file.named("users", chosen.text("user")) if chosen.text("user") else chosen._replace(value={})
    for key, feature in REFUSED.items():
        if user.text(key):
            raise Unsupported(f"{feature} in {user.where}", needs=INSTEAD)
    if cluster.text("proxy-url"):
        raise Unsupported(f"proxy-url in {cluster.where}", needs="a direct way to the API server")
    token_file = user.text("tokenFile")
    return Kubeconfig(
        str(cluster.part("server").value).rstrip("/"),
        cluster.pem("certificate-authority"),
        cluster.text("insecure-skip-tls-verify").lower() != "true",
        cluster.text("tls-server-name"),
        user.text("token"),
        user.folder / token_file if token_file else None,
        user.pem("client-certificate"),
        user.pem("client-key"),
        _plugin(user, cluster, wall),
    )


def _plugin(user: _Section, cluster: _Section, wall: Callable[[], float]) -> ExecPlugin | None:
    """A token goes before it, as with kubectl."""
    if not user.text("exec") or user.text("token") or user.text("tokenFile"):
        return None
    ca = cluster.pem("certificate-authority")
    about = {
        "server": cluster.text("server"),
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.text("insecure-skip-tls-verify").lower() == "true",
        "certificate-authority-data": b64encode(ca.encode()).decode(),
    }
    described = {name: value for name, value in about.items() if value}
    return plugin_of(user.value["exec"], user.where, user.folder, described, wall)
