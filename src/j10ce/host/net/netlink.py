"""Messages to and from the kernel's network side (rtnetlink), as bytes: 0.1 MiB where a library takes ten.

Several requests travel as one datagram, which the kernel works off within one system call: a process that is killed has
done all of them or none.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from weakref import finalize

from j10ce.errors import Corrupt, Unsupported

REQUEST: Final = 0x1
ACK: Final = 0x4
REPLACE: Final = 0x100
EXCLUSIVE: Final = 0x200
CREATE: Final = 0x400
DUMP: Final = 0x300
GROUP_LINK: Final = 1 << 0
GROUP_ROUTE4: Final = 1 << 6
GROUP_ROUTE6: Final = 1 << 10
GROUP_QUEUES: Final = 1 << 3

_ROUTE: Final = 0  # NETLINK_ROUTE
SOCK_DIAG: Final = 4
_SOL_NETLINK: Final = 270
_CAP_ACK: Final = 10
_EXT_ACK: Final = 11
_STRICT: Final = 12
_ERROR: Final = 2
_DONE: Final = 3
_INTERRUPTED: Final = 0x10  # of a dump: something changed meanwhile
_ACK_TEXTS: Final = 0x200
_CAPPED: Final = 0x100  # of an answer: it repeats the header of the request alone
_TEXT: Final = 1  # NLMSGERR_ATTR_MSG
_HEADER: Final = struct.Struct("=IHHII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_NUMBER: Final = struct.Struct("=i")
_TYPE: Final = 0x3FFF  # without the bits that say nested and big-endian
_MOST: Final = 1 << 17
_KEPT: Final = 1 << 20  # for us, until we read it
_SENT_AT_ONCE: Final = 1 << 15
_SO_SNDBUFFORCE: Final = 32
_TRIES: Final = 5
PATIENCE_S: Final = 5  # the kernel answers within the call; whoever waits longer waits for nobody


class Message(NamedTuple):
    kind: int
    flags: int
    number: int
    body: bytes


class NetlinkRequest(NamedTuple):
    kind: int
    body: bytes
    flags: int = 0


class NetlinkAnswer(NamedTuple):
    """What the kernel said to one request; code 0: it is done."""

    code: int
    text: str = ""

    def __str__(self) -> str:
        name = errno.errorcode.get(self.code, str(self.code))
        return f"{name} ({self.text})" if self.text else name


def messages(data: bytes) -> Iterator[Message]:
    """Raises Corrupt for what no kernel sends."""
    at = 0
    while at < len(data):
        if len(data) - at < _HEADER.size:
            raise Corrupt(f"netlink: {len(data) - at} bytes where a header takes {_HEADER.size}")
        length, kind, flags, number, _ = _HEADER.unpack_from(data, at)
        if not _HEADER.size <= length <= len(data) - at:
            raise Corrupt(f"netlink: a message of {length} bytes in {len(data) - at}")
        yield Message(kind, flags, number, data[at + _HEADER.size : at + length])
        at += _aligned(length)


def attributes(data: bytes, at: int = 0) -> Iterator[tuple[int, bytes]]:
    """(type, value) of each; raises Corrupt for what no kernel sends."""
    while at < len(data):
        if len(data) - at < _ATTRIBUTE.size:
            raise Corrupt(f"netlink: {len(data) - at} bytes where an attribute takes {_ATTRIBUTE.size}")
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if not _ATTRIBUTE.size <= length <= len(data) - at:
            raise Corrupt(f"netlink: an attribute of {length} bytes in {len(data) - at}")
        yield kind & _TYPE, data[at + _ATTRIBUTE.size : at + length]
        at += _aligned(length)


def attribute(kind: int, value: bytes) -> bytes:
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + b"\0" * (-len(value) % 4)


def text(value: bytes) -> str:
    return value.partition(b"\0")[0].decode(errors="replace")


def number(value: bytes) -> int:
    """Of 1 to 8 bytes, unsigned."""
    return int.from_bytes(value[:8], "little" if _little() else "big")


class Netlink:
    """One socket, used from one thread. It stays in the network namespace that it was opened in."""

    def __init__(self, of: int = _ROUTE, *, strict: bool = False) -> None:
        """`of`: whom it speaks with in the kernel; `strict`: what is asked for narrows a dump (Linux 4.20)."""
        self._socket = _open(0, of)
        if strict:
            with suppress(OSError):
                self._socket.setsockopt(_SOL_NETLINK, _STRICT, 1)
        self._buffer = _Buffer()
        self.close = finalize(self, self._socket.close)
        self._number = 0
        self.port: int = self._socket.getsockname()[0]  # who is named in what the kernel tells everybody

    def dump(self, kind: int, body: bytes) -> list[Message]:
        """Every object of a kind; asked again where it changed meanwhile. OSError as the kernel says."""
        answer: list[Message] = []
        for _ in range(_TRIES):
            self._send([NetlinkRequest(kind, body, DUMP)])
            answer = list(self._parts())
            if not any(m.flags & _INTERRUPTED for m in answer):
                break
        return answer

    def ask(self, requests: Sequence[NetlinkRequest]) -> list[NetlinkAnswer]:
        """In one system call, in their order; each is tried, whatever became of those before.

        Only the last is answered in any case: thousands of answers are more than the kernel keeps for us.
        """
        *before, last = requests
        first = self._send([*before, last._replace(flags=last.flags | ACK)])
        answers: dict[int, NetlinkAnswer] = {}
        while len(before) not in answers:
            for m in messages(self._receive()):
                if m.kind == _ERROR and 0 <= m.number - first <= len(before):
                    answers[m.number - first] = _answer(m)
        return [answers.get(n, NetlinkAnswer(0)) for n in range(len(requests))]

    def _send(self, requests: Sequence[NetlinkRequest]) -> int:
        """The number of the first."""
        first, out = self._number + 1, []
        for r in requests:
            self._number = self._number % 0x7FFF_FFFF + 1
            out.append(_HEADER.pack(_HEADER.size + len(r.body), r.kind, r.flags | REQUEST, self._number, 0))
            out.append(r.body + b"\0" * (-len(r.body) % 4))
        whole = b"".join(out)
        if len(whole) > _SENT_AT_ONCE:
            with suppress(OSError):  # what is done at once is more than other sockets may send at once
                self._socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, len(whole))
        self._socket.send(whole)
        return first

    def _parts(self) -> Iterator[Message]:
        while True:
            for m in messages(self._receive()):
                if m.number != self._number:
                    continue  # of a dump that was given up
                if m.kind == _DONE:
                    return
                if m.kind == _ERROR:
                    said = _answer(m)
                    raise OSError(said.code, f"{os.strerror(said.code)} {said.text}".strip())
                yield m

    def _receive(self) -> bytes:
        return self._buffer.filled(self._socket)


class NetlinkWatch:
    """Hears that something changed, without waiting for it."""

    def __init__(self, groups: int) -> None:
        self._socket = _open(groups)
        self._socket.setblocking(False)
        self._buffer = _Buffer()
        self.close = finalize(self, self._socket.close)

    def heard(self) -> list[tuple[int, Message]]:
        """(who did it, what) since the last call; raises OSError ENOBUFS where there was more than the kernel keeps."""
        out: list[tuple[int, Message]] = []
        while True:
            try:
                data = self._buffer.filled(self._socket)
            except BlockingIOError:
                return out
            out.extend((_HEADER.unpack_from(data)[4], m) for m in messages(data))


class _Buffer:
    """What a message may take, once: as much for every call costs more than the call."""

    def __init__(self) -> None:
        self._whole = memoryview(bytearray(_MOST))

    def filled(self, by: socket.socket) -> bytes:
        return bytes(self._whole[: by.recv_into(self._whole)])


def _open(groups: int, of: int = _ROUTE) -> socket.socket:
    family = getattr(socket, "AF_NETLINK", None)
    if family is None:
        raise Unsupported("rtnetlink", needs="Linux")
    try:
        opened = socket.socket(family, socket.SOCK_RAW | socket.SOCK_CLOEXEC, of)
    except OSError as e:
        raise Unsupported("rtnetlink", needs=f"sockets of AF_NETLINK; kernel said {e.strerror}") from e
    opened.settimeout(PATIENCE_S)
    for option in (_CAP_ACK, _EXT_ACK):
        with suppress(OSError):  # Linux 4.12 has both: answers without them are long and say less
            opened.setsockopt(_SOL_NETLINK, option, 1)
    with suppress(OSError):
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _KEPT)
    opened.bind((0, groups))
    return opened


def _answer(m: Message) -> NetlinkAnswer:
    if len(m.body) < _NUMBER.size:
        raise Corrupt(f"netlink: an answer of {len(m.body)} bytes")
    (code,) = _NUMBER.unpack_from(m.body)
    said = ""
    if code and m.flags & _ACK_TEXTS and len(m.body) >= _NUMBER.size + _HEADER.size:
        echoed = _HEADER.size if m.flags & _CAPPED else _aligned(_HEADER.unpack_from(m.body, _NUMBER.size)[0])
        said = next((text(v) for k, v in attributes(m.body, _NUMBER.size + echoed) if k == _TEXT), "")
    return NetlinkAnswer(-code, said)


def _aligned(length: int) -> int:
    return (length + 3) & ~3


def _little() -> bool:
    return struct.pack("=H", 1) == b"\1\0"
