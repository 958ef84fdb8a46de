"""Who may talk to the API: bearer token or client certificate, Host and Origin."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from starlette.types import Scope

from j10ce.errors import shown
from j10ce.http.status import Refusal
from j10ce.manager.access.tokens import Keyring, Ticket
from j10ce.manager.asgi.requests import headers
from j10ce.manager.fairness.large import rooms
from j10ce.manager.fairness.rate_limits import Limits

MOST_HOST: Final = 300  # characters; a name has 253 at most
READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
PINGS: Final = ("/healthz/ping", "/livez/ping", "/readyz/ping")  # that there is somebody who answers
OPEN_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz", *PINGS, "/version"})


class Access:
    """The check that every request passes before anything else looks at it.

    `loopback`: the name in Host must be this machine's own, so that a web page whose name resolves to 127.0.0.1
    gets no further than here (DNS rebinding).
    """

    def __init__(self, keyring: Keyring, limits: Limits, *, loopback: bool) -> None:
        self.keyring, self.limits, self.rooms = keyring, limits, rooms()
        self._loopback = loopback

    def check(self, scope: Scope) -> Ticket | None:
        """Who asks over HTTP; None where anyone may. Raises Refusal 401, 403 or 429."""
        given = headers(scope)
        self._check_page(given)
        if scope["path"] in OPEN_PATHS:
            return None
        certified: Ticket | None = scope.get("state", {}).get("certified")
        writes = scope["method"] not in READING
        return self.authenticate(given.get(b"authorization", b""), source(scope), certified, writes=writes)

    def authenticate(
        self, authorization: bytes, source: str, certified: Ticket | None = None, *, writes: bool = False
    ) -> Ticket:
        """Who sends this `Authorization`, over any protocol; without one, whom the client's certificate names.

        Raises Refusal 401 or 429.
        """
        if certified is not None and not authorization and self.keyring.holds(certified):
            self.limits.request(certified.caller, writes=writes)
            return certified
        token = _token(authorization, basic=self._loopback)
        ticket = self.keyring.recognise(token) if token else None
        if ticket is None:
            self.limits.stranger(source)
            raise Refusal(401, "a valid bearer token is needed", {"www-authenticate": "Bearer"})
        self.limits.request(ticket.caller, writes=writes)
        return ticket

    def knows(self, authorization: bytes) -> bool:
        token = _token(authorization, basic=self._loopback)
        return bool(token) and self.keyring.recognise(token) is not None

    def _check_page(self, given: dict[bytes, bytes]) -> None:
        host = given.get(b"host", b"").decode("latin-1")
        if self._loopback and not is_loopback(host):
            raise Refusal(403, f"Host {shown(host)} is not this machine: use 127.0.0.1, ::1 or localhost")
        origin = given.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2] != host:
            raise Refusal(403, f"Origin {shown(origin.decode('latin-1'))} is not {shown(host)}")


def _token(authorization: bytes, *, basic: bool) -> bytes:
    """Of a bearer; or a password: kubectl sends no tokens without TLS, only what stands in the server's address."""
    scheme, _, given = authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        return given
    if not basic or scheme.lower() != b"basic":
        return b""
    try:
        return b64decode(given, validate=True).partition(b":")[2]
    except NotBase64:
        return b""


def source(scope: Scope) -> str:
    """The address a request came from."""
    client = scope.get("client")
    return client[0] if client else ""


def from_here(scope: Scope) -> bool:
    """Whether a request came from this machine."""
    try:
        address = ip_address(source(scope))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None  # of a socket that serves both
    return (mapped or address).is_loopback


def is_loopback(host: str) -> bool:
    """Whether a Host header or listen address (`name`, `name:port`, `[::1]:port`) means this machine alone."""
    return len(host) <= MOST_HOST and _is_loopback(host)


@lru_cache(64)
def _is_loopback(host: str) -> bool:
    name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "")
    if port and not port.isdecimal():
        return False
    if name == "localhost":
        return True
    try:
        return ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
