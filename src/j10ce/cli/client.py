"""One small HTTP client for both peers: the agent on its unix socket, the API on TCP."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

import h11

from j10ce import __version__
from j10ce.errors import Busy, Conflict, Denied, Finding, Invalid, NotFound, QosError, Unreachable
from j10ce.http.addresses import keep_secret

if TYPE_CHECKING:
    pass  # loaded where it is used: half of all calls go to a unix socket

UNAVAILABLE: Final = 503
IMPATIENT_S: Final = 3.0  # for a peer to take the call while there are others


class Client:
    """Requests to one peer, or to the first of several that takes the call.

    Errors come back as the exceptions of `j10ce.errors`.
    """

    def __init__(
        self,
        where: str,
        *,
        token: str = "",
        ca: str = "",
        certificate: tuple[str, str] | None = None,
        timeout: float = 30.0,
    ) -> None:
        """`where` may list addresses, separated by commas; `ca` is PEM; `certificate`: itself and its key, in PEM."""
        self.where = where
        self.token = token
        self.timeout = timeout
        self._addresses = where.split(",")
        self._ca, self._certificate = ca, certificate

    def get(self, path: str, **query: str) -> Any:
        return self.call("GET", path, query=query)

    def post(self, path: str, body: object = None, **query: str) -> Any:
        return self.call("POST", path, body, query=query)

    def put(self, path: str, body: object, **query: str) -> Any:
        return self.call("PUT", path, body, query=query)

    def delete(self, path: str, body: object = None, **query: str) -> Any:
        return self.call("DELETE", path, body, query=query)

    def call(self, method: str, path: str, body: object = None, *, query: Mapping[str, str] | None = None) -> Any:
        """One request and its decoded answer. A read that one of several peers does not serve is taken to the next."""
        exchange, data = self._answered(method, path, body, query)
        if exchange.status >= 400:
            raise _error(exchange.status, data, f"{method} {path}")
        if exchange.json:
            return json.loads(data)
        if path.startswith(("/v1", "/apis")):
            raise Unreachable(f"{self.where} answers, but it is no j10ce-qos API; check the address")
        return data.decode()

    def _answered(
        self, method: str, path: str, body: object, query: Mapping[str, str] | None
    ) -> tuple[Exchange, bytes]:
        for _ in self._addresses[1:] if method == "GET" else ():
            with suppress(Unreachable):
                exchange, data = self._asked(method, path, body, query)
                if exchange.status != UNAVAILABLE:
                    return exchange, data
                self._pass_over()
        return self._asked(method, path, body, query)

    def _asked(self, method: str, path: str, body: object, query: Mapping[str, str] | None) -> tuple[Exchange, bytes]:
        with self._exchange(method, path, body, query) as exchange:
            return exchange, b"".join(exchange.body())

    def _pass_over(self) -> None:
        """Whom we ask first is asked last from here on."""
        self._addresses.append(self._addresses.pop(0))

    def stream(self, path: str, **query: str) -> Iterator[Any]:
        """A watch: one decoded document per line, until the peer ends it. Silence may last."""
        with self._exchange("GET", path, None, query) as exchange:
            if exchange.status >= 400:
                raise _error(exchange.status, b"".join(exchange.body()), f"GET {path}")
            exchange.sock.settimeout(None)
            begun = b""
            for piece in exchange.body():
                *lines, begun = (begun + piece).split(b"\n")
                yield from (json.loads(line) for line in lines if line.strip())

    @contextmanager
    def _exchange(self, method: str, path: str, body: object, query: Mapping[str, str] | None) -> Iterator[Exchange]:
        """A request that has been sent and an answer that has begun; every failure on the way is Unreachable."""
        data = b"" if body is None else json.dumps(body).encode()
        url = path + (f"?{urlencode(query)}" if query else "")
        try:
            with self._reach() as sock:
                exchange = Exchange(sock)
                exchange.send(h11.Request(method=method, target=url, headers=self._headers(data)), data)
                yield exchange
        except PermissionError as e:
            raise Denied(f"{self.where}: permission denied; run as root, or join group j10ce") from e
        except (FileNotFoundError, ConnectionRefusedError) as e:
            missing = "start its manager, or check --server" if "://" in self.where else "start one with `j10ce-qos up`"
            raise Unreachable(f"nobody listens on {self.where}; {missing}") from e
        except (OSError, h11.RemoteProtocolError) as e:
            self._pass_over()
            raise Unreachable(f"{self.where} does not answer: {e}") from e

    def _headers(self, data: bytes) -> list[tuple[str, str]]:
        headers = [("Host", urlsplit(self._addresses[0]).netloc or "localhost"), ("Accept", "application/json")]
        headers.append(("User-Agent", f"j10ce-qos/{__version__}"))
        if self.token:
            headers.append(("Authorization", f"Bearer {self.token}"))
        if data:
            headers += [("Content-Type", "application/json")]
        return [*headers, ("Content-Length", str(len(data))), ("Connection", "close")]

    def _reach(self) -> socket.socket:
        """A connection to the first peer that takes the call; it is asked first from then on."""
        for _ in self._addresses[1:]:
            try:
                return self._connect(self._addresses[0], min(self.timeout, IMPATIENT_S))
            except OSError:
                self._pass_over()
        return self._connect(self._addresses[0], self.timeout)

    def _connect(self, where: str, patience_s: float) -> socket.socket:
        if where.startswith("unix:"):
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(self.timeout)
            try:
                sock.connect(where.removeprefix("unix:"))
            except OSError:
                sock.close()
                raise
            return sock
        secure, host, port = _address(where)
        if self.token:
            keep_secret(where)
        sock = socket.create_connection((host, port or (443 if secure else 80)), patience_s)
        if secure:
            sock = self._secured(sock, host, where)
        sock.settimeout(self.timeout)
        return sock

    def _secured(self, sock: socket.socket, host: str, where: str) -> socket.socket:
        import ssl

        from j10ce.kube.access import load_certificate

        context = ssl.create_default_context(cadata=self._ca or None)
        # Python 3.13 asks more of a CA than clusters have been giving theirs for years.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self._certificate:
            load_certificate(context, *self._certificate)
        try:
            return context.wrap_socket(sock, server_hostname=host)
        except ssl.SSLCertVerificationError as e:
            raise Unreachable(
                f"{where} is not trusted: {e.verify_message}; name its authority with --ca-file"
            ) from None


class Exchange:
    """One request on one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.status = 0
        self.json = False
        self._http = h11.Connection(our_role=h11.CLIENT)

    def send(self, request: h11.Request, data: bytes) -> None:
        """Returns once the head of the answer is there."""
        parts = (request, h11.Data(data=data), h11.EndOfMessage())
        self.sock.sendall(b"".join(self._http.send(part) or b"" for part in parts))
        while not isinstance(answer := self._event(), h11.Response):
            pass
        self.status = answer.status_code
        self.json = dict(answer.headers).get(b"content-type", b"").startswith(b"application/json")

    def body(self) -> Iterator[bytes]:
        while isinstance(piece := self._event(), h11.Data):
            yield bytes(piece.data)

    def _event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(self.sock.recv(65536))
        return event


def _address(where: str) -> tuple[bool, str, int | None]:
    """(TLS, host, port); raises Invalid."""
    try:
        url = urlsplit(where)
        if url.scheme in ("http", "https") and url.hostname:
            return url.scheme == "https", url.hostname, url.port
    except ValueError:
        pass  # a port that is no number
    raise Invalid([Finding("--server", where, "not an address", "write it as http://127.0.0.1:7443")], "option")


def _error(status: int, data: bytes, what: str) -> QosError:
    """The exception that a Status answer tells."""
    try:
        told = json.loads(data)
    except ValueError:
        told = {}
    message = str(told.get("message") or data.decode(errors="replace").strip() or f"HTTP {status}")
    match status:
        case 404:
            return NotFound(message)
        case 409:
            return Busy(message) if told.get("reason") == "Busy" else Conflict(message)
        case 401 | 403:
            return Denied(message)
        case 400 | 422:
            causes = (told.get("details") or {}).get("causes") or []
            noun, found, _ = message.removeprefix("invalid ").partition(": ")
            return Invalid([_finding(c) for c in causes] or [Finding("", None, message)], noun if found else what)
        case 501:
            return QosError(message)
        case 503:
            return Unreachable(message)
        case _:
            return QosError(f"{what}: {message} (HTTP {status})")


def _finding(cause: Mapping[str, str]) -> Finding:
    """As the peer found it; some peers repeat the field in the message."""
    field, message = cause.get("field", ""), cause.get("message", "")
    if field and message.startswith(field):
        field, _, message = message.partition(": ")
    return Finding(field, None, message)
