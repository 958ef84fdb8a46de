"""One small HTTP client for both peers: the agent on its unix socket, the API on TCP."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import h11
import msgspec

from j10ce.errors import Denied, Finding, Invalid, QosError, Unreachable
from j10ce.http.addresses import keep_secret
from j10ce.http.dialogue import JSON, Dialogue, headers
from j10ce.http.lines import Cutter
from j10ce.http.status import UNAVAILABLE, UNSUPPORTED, document_of, error_of, exit_code, status_of

COMMAND: Final = "j10ce-qos"
HTML: Final = b"text/html"
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
        absent: str = "",
    ) -> None:
        """`where` may list addresses, separated by commas; `ca` is PEM; `certificate`: itself and its key, in PEM.
        `absent`: what to do where nobody answers."""
        self.where = where
        self.token = token
        self.timeout = timeout
        self._absent = absent or "start one with `j10ce-qos up`"
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
            raise self._stranger() if exchange.foreign else _error(exchange.status, data, f"{method} {path}")
        if exchange.json:
            return document_of(data, self.where)
        if path.startswith(("/v1", "/apis")):
            raise self._stranger()
        return data.decode()

    def _stranger(self) -> Unreachable:
        return Unreachable(f"{self.where} answers, but it is no j10ce-qos API; check the address")

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
            cutter = Cutter()
            for piece in exchange.body():
                yield from (document_of(line, self.where) for line in cutter.cut(piece) if line.strip())

    @contextmanager
    def _exchange(self, method: str, path: str, body: object, query: Mapping[str, str] | None) -> Iterator[Exchange]:
        """A request that has been sent and an answer that has begun; every failure on the way is Unreachable."""
        data = b"" if body is None else msgspec.json.encode(body)
        url = path + (f"?{urlencode(query)}" if query else "")
        try:
            with self._reach() as sock:
                exchange = Exchange(sock)
                given = headers(self._addresses[0], COMMAND, self.token, data)
                exchange.send(exchange.dialogue.request(method, url, [*given, ("Connection", "close")], data))
                yield exchange
        except PermissionError as e:
            raise Denied(f"{self.where}: permission denied; run as root, or join group j10ce") from e
        except (FileNotFoundError, ConnectionRefusedError) as e:
            if "://" in self.where:
                missing = f"no API answers at {self.where}; start its manager, or check --server"
            else:
                missing = f"no agent is running at {self.where.removeprefix('unix:')}; {self._absent}"
            raise Unreachable(missing) from e
        except (OSError, h11.RemoteProtocolError) as e:
            self._pass_over()
            raise Unreachable(f"{self.where} does not answer: {e}") from e

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
        secure, host, port = address(where)
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
        except ssl.SSLError as e:
            if e.reason == "WRONG_VERSION_NUMBER":  # of whatever a peer without TLS answers
                plain = where.replace("https://", "http://", 1)
                raise Unreachable(f"{where} speaks http, not https; write --server {plain}") from None
            if not isinstance(e, ssl.SSLCertVerificationError):
                raise
            raise Unreachable(
                f"{where} is not trusted: {e.verify_message}; name its authority with --ca-file"
            ) from None


class Exchange:
    """One request on one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.dialogue = sock, Dialogue()
        self.status = 0
        self.json = self.foreign = False  # an error as a page for browsers is no API's

    def send(self, request: bytes) -> None:
        """Returns once the head of the answer is there."""
        self.sock.sendall(request)
        if not isinstance(head := self._event(), h11.Response):
            raise ConnectionResetError("it closed the connection")
        self.status = head.status_code
        form = dict(head.headers).get(b"content-type", b"")
        self.json, self.foreign = form.startswith(JSON.encode()), form.startswith(HTML)

    def body(self) -> Iterator[bytes]:
        while isinstance(piece := self._event(), h11.Data):
            yield bytes(piece.data)

    def _event(self) -> object:
        while (event := self.dialogue.event()) is None:
            self.dialogue.received(self.sock.recv(65536))
        return event


def address(where: str) -> tuple[bool, str, int | None]:
    """(TLS, host, port); raises Invalid."""
    try:
        url = urlsplit(where)
        if url.scheme in ("http", "https") and url.hostname:
            return url.scheme == "https", url.hostname, url.port
    except ValueError:
        pass  # a port that is no number
    scheme = "http" if where.startswith(("127.", "localhost")) else "https"
    meant = f"{scheme}://{where}" if re.fullmatch(r"[\w.-]+:\d+", where) else "http://127.0.0.1:7443"
    raise Invalid([Finding("--server", where, "not an address", f"write it as {meant}")], "option")


def _error(code: int, data: bytes, what: str) -> QosError:
    """The exception that a Status answer tells; one that its exit code does not tell apart says what was asked."""
    status = status_of(data)
    message = status.message or f"HTTP {code}"
    kind = error_of(code, status.reason)
    if issubclass(kind, Invalid):
        noun, colon, _ = message.removeprefix("invalid ").partition(": ")
        return kind([_tidy(finding) for finding in status.findings()], noun if colon else what)
    if code == UNSUPPORTED or exit_code(kind) > 1:
        return kind(message)
    return kind(f"{what}: {message} (HTTP {code})")


def _tidy(finding: Finding) -> Finding:
    """Some peers repeat the field, with its value, in the message."""
    if not finding.path or not finding.problem.startswith(finding.path):
        return finding
    field, _, problem = finding.problem.partition(": ")
    return Finding(field, None, problem)
