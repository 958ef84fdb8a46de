"""kubeconfig files: where the API server is, whom to trust, and how to say who asks.

Only what stands in the file, or in files that it names, is used; nothing is executed.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec.yaml

from j10ce.errors import Finding, Invalid, Unsupported

INSTEAD: Final = "a token (`kubectl create token ACCOUNT`) or a client certificate in the kubeconfig"
REFUSED: Final = {
    "exec": "exec plugins",
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


def read_kubeconfig(path: Path, context: str = "") -> Kubeconfig:
    """`context`: another than the current one. Raises Invalid, Unsupported, and OSError for an unreadable file."""
    try:
        return _of(_Section(str(path), path.parent, _loaded(path)), context)
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
    told: Any

    def part(self, key: str) -> _Section:
        if not isinstance(self.told, Mapping) or key not in self.told:
            raise Invalid([Finding(self.where, None, f"has no {key}", "write it anew")], "kubeconfig")
        return self._replace(where=f"{self.where}: {key}", told=self.told[key])

    def named(self, group: str, name: str) -> _Section:
        """The entry of that name, as `kubectl config` keeps them: `clusters: [{name: …, cluster: …}]`."""
        listed = self.part(group)
        for entry in listed.told if isinstance(listed.told, list) else ():
            if isinstance(entry, Mapping) and entry.get("name") == name:
                return listed._replace(told=entry).part(group.removesuffix("s"))
        raise Invalid([Finding(listed.where, name, "not among them", "choose another one")], "kubeconfig")

    def text(self, key: str) -> str:
        found = self.told.get(key) if isinstance(self.told, Mapping) else None
        return "" if found is None else str(found)

    def pem(self, key: str) -> str:
        """Out of the file itself, or out of a file beside it."""
        if data := self.text(f"{key}-data"):
            return b64decode(data).decode()
        file = self.text(key)
        return (self.folder / file).read_text() if file else ""


def _of(file: _Section, context: str) -> Kubeconfig:
    chosen = file.named("contexts", context or str(file.part("current-context").told))
    cluster = file.named("clusters", str(chosen.part("cluster").told))
    user = file.named("users", chosen.text("user")) if chosen.text("user") else chosen._replace(told={})
    for key, feature in REFUSED.items():
        if user.text(key):
            raise Unsupported(f"{feature} in {user.where}", needs=INSTEAD)
    if cluster.text("proxy-url"):
        raise Unsupported(f"proxy-url in {cluster.where}", needs="a direct way to the API server")
    token_file = user.text("tokenFile")
    return Kubeconfig(
        str(cluster.part("server").told).rstrip("/"),
        cluster.pem("certificate-authority"),
        cluster.text("insecure-skip-tls-verify").lower() != "true",
        cluster.text("tls-server-name"),
        user.text("token"),
        user.folder / token_file if token_file else None,
        user.pem("client-certificate"),
        user.pem("client-key"),
    )
