"""Addresses of peers: which of them keep a secret."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from j10ce.errors import Denied

_HERE: Final = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


def confidential(url: str) -> bool:
    """Whether nobody on the way can read or change what is said: TLS, or a peer on this very host."""
    if url.startswith("unix:"):
        return True
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" or bool(_HERE.fullmatch(parts.hostname or ""))
    except ValueError:
        return False


def keep_secret(url: str) -> None:
    """Before a token is sent; raises Denied where others could read it."""
    if not confidential(url):
        raise Denied(f"{url}: a token is sent over TLS or loopback only; write https://")
