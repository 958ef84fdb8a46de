"""HTTP/1.1 as a client without a socket: the bytes of a request, and what the bytes of its answer mean."""

from __future__ import annotations

from urllib.parse import urlsplit

import h11

from j10ce import __version__

JSON = "application/json"


class Dialogue:
    """One connection's conversation: requests one after another, each with its answer."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT)
        self._closed = False  # by the peer

    def request(self, method: str, target: str, headers: list[tuple[str, str]], data: bytes) -> bytes:
        """What to send."""
        parts = (h11.Request(method=method, target=target, headers=headers), h11.Data(data=data), h11.EndOfMessage())
        return b"".join(self._http.send(part) or b"" for part in parts)

    def received(self, data: bytes) -> None:
        """Empty where the peer has closed its end. Raises h11.ProtocolError."""
        self._closed = not data
        self._http.receive_data(data)

    def event(self) -> h11.Response | h11.Data | h11.EndOfMessage | h11.ConnectionClosed | None:
        """The next part of the answer; None where more has to be received first. Raises h11.ProtocolError."""
        try:
            while isinstance(event := self._http.next_event(), h11.InformationalResponse):
                pass
        except h11.RemoteProtocolError as e:
            if not self._closed:
                raise
            raise h11.RemoteProtocolError("it closed the connection before its answer was complete") from e
        return None if event is h11.NEED_DATA else event  # type: ignore[return-value]  # a client hears no request

    @property
    def begun(self) -> bool:
        """Whether the answer has."""
        return self._http.their_state is not h11.SEND_RESPONSE

    def again(self) -> bool:
        """Whether the next request may follow; makes ready for it."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True


def headers(url: str, who: str, token: str, data: bytes, content: str = JSON) -> list[tuple[str, str]]:
    """Of a request to `http://host:port`, `https://host:port` or `unix:/path` by a program called `who`."""
    host = "localhost" if url.startswith("unix:") else urlsplit(url).netloc
    given = [("Host", host), ("Accept", JSON), ("Content-Length", str(len(data))), ("Content-Type", content)]
    authorization = [("Authorization", f"Bearer {token}")] if token else []
    return [*given, ("User-Agent", f"{who}/{__version__}"), *authorization]
