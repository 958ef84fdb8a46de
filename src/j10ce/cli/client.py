"""One small HTTP client for both peers: the agent on its unix socket, the API on TCP."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from j10ce.errors import Busy, Conflict, Denied, Finding, Invalid, NotFound, QosError, Unreachable


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class Client:
    """Requests to one peer; errors come back as the exceptions of `j10ce.errors`."""

    def __init__(self, where: str, *, token: str = "", ca: str | None = None, timeout: float = 30.0) -> None:
        self.where = where
        self.token = token
        self.ca = ca
        self.timeout = timeout

    def get(self, path: str, **query: str) -> Any:
        return self.call("GET", path, query=query)

    def post(self, path: str, body: object = None, **query: str) -> Any:
        return self.call("POST", path, body, query=query)

    def put(self, path: str, body: object, **query: str) -> Any:
        return self.call("PUT", path, body, query=query)

    def delete(self, path: str, body: object = None, **query: str) -> Any:
        return self.call("DELETE", path, body, query=query)

    def call(self, method: str, path: str, body: object = None, *, query: Mapping[str, str] | None = None) -> Any:
        """One request and its decoded answer."""
        connection, answer = self._send(method, path, body, query)
        try:
            data = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise _error(answer.status, data, f"{method} {path}")
        if answer.headers.get_content_type() == "application/json":
            return json.loads(data)
        if path.startswith(("/v1", "/apis")):
            raise Unreachable(f"{self.where} answers, but it is no j10ce-qos API; check the address")
        return data.decode()

    def stream(self, path: str, **query: str) -> Iterator[Any]:
        """A watch: one decoded document per line, until the peer ends it. Silence may last."""
        connection, answer = self._send("GET", path, None, query)
        connection.sock.settimeout(None)
        try:
            if answer.status >= 400:
                raise _error(answer.status, answer.read(), f"GET {path}")
            for line in answer:
                if line.strip():
                    yield json.loads(line)
        finally:
            connection.close()

    def _send(
        self, method: str, path: str, body: object, query: Mapping[str, str] | None
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
        url = path + (f"?{urlencode(query)}" if query else "")
        connection = self._connection()
        try:
            connection.request(method, url, data, headers)
            return connection, connection.getresponse()
        except PermissionError as e:
            connection.close()
            raise Denied(f"{self.where}: permission denied; run as root, or join group j10ce") from e
        except (FileNotFoundError, ConnectionRefusedError) as e:
            connection.close()
            raise Unreachable(f"nobody listens on {self.where}; start the agent with `j10ce-qos up`") from e
        except (OSError, http.client.HTTPException) as e:
            connection.close()
            raise Unreachable(f"{self.where} does not answer: {e}") from e

    def _connection(self) -> http.client.HTTPConnection:
        if self.where.startswith("unix:"):
            return UnixConnection(Path(self.where.removeprefix("unix:")), self.timeout)
        secure, host, port = _address(self.where)
        if secure:
            import ssl

            context = ssl.create_default_context(cafile=self.ca)
            return http.client.HTTPSConnection(host, port or 443, timeout=self.timeout, context=context)
        return http.client.HTTPConnection(host, port or 80, timeout=self.timeout)


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
