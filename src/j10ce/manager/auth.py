"""Who may talk to the API: bearer token, Host and Origin; and the files that carry the token to its owner."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import msgspec

from j10ce.errors import Denied
from j10ce.manager.failure import Refusal

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/version"})
Headers = Iterable[tuple[bytes, bytes]]


class Access:
    """The check that every request passes before anything else looks at it.

    `loopback`: the name in Host must be this machine's own, so that a web page whose name resolves to 127.0.0.1
    gets no further than here (DNS rebinding).
    """

    def __init__(self, token: str, *, loopback: bool) -> None:
        self._expected = b"Bearer " + token.encode()
        self._loopback = loopback

    def check(self, path: str, headers: Headers) -> None:
        given = {name: value for name, value in headers if name in (b"host", b"origin", b"authorization")}
        host = given.get(b"host", b"").decode("latin-1")
        if self._loopback and not is_loopback(host):
            raise Refusal(403, "Forbidden", f"Host {host!r} is not this machine: use 127.0.0.1, ::1 or localhost")
        origin = given.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2] != host:
            raise Refusal(403, "Forbidden", f"Origin {origin.decode('latin-1')!r} is not {host!r}")
        if path not in OPEN_PATHS and not hmac.compare_digest(given.get(b"authorization", b""), self._expected):
            raise Refusal(401, "Unauthorized", "a valid bearer token is needed", {"www-authenticate": "Bearer"})


@lru_cache(64)
def is_loopback(host: str) -> bool:
    """Whether a Host header or listen address (`name`, `name:port`, `[::1]:port`) means this machine alone."""
    name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "")
    if port and not port.isdecimal():
        return False
    if name == "localhost":
        return True
    try:
        return ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def read_token(path: Path) -> str:
    """The token in a file that only its owner can read; a missing file is made, with a fresh token."""
    try:
        mode, text = path.stat().st_mode, path.read_text().strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(32)
        write_private(path, token + "\n")
        return token
    except OSError as e:
        raise Denied(f"cannot read the token in {path}: {e.strerror}") from None
    if mode & 0o077:
        raise Denied(f"{path} may be read by others (mode {mode & 0o777:04o}); chmod 600 it and change the token")
    if not text:
        raise Denied(f"{path} holds no token; remove it, and a fresh one is written")
    return text


def write_kubeconfig(path: Path, server: str, token: str, *, ca: Path | None = None) -> None:
    """What a client needs to find us. JSON is YAML, so kubectl reads it, too."""
    cluster: dict[str, Any] = {"server": server} | ({"certificate-authority": str(ca.resolve())} if ca else {})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "j10ce", "cluster": cluster}],
        "users": [{"name": "owner", "user": {"token": token}}],
        "contexts": [{"name": "j10ce", "context": {"cluster": "j10ce", "user": "owner", "namespace": "default"}}],
        "current-context": "j10ce",
    }
    write_private(path, msgspec.json.format(msgspec.json.encode(config), indent=2).decode() + "\n")


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, readable by its owner alone from the first byte."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
