"""The program that says which class a packet belongs to: by the cgroup of its socket, then by what must never wait.

Written in the kernel's own instructions, 8 bytes each, so that nothing has to be compiled, shipped or linked. It
returns the class, or 0 for a packet that it knows nothing of, which is then in the class of everybody else.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from typing import Final

from j10ce.host.net.bpf import Map

_R0, _R1, _R2, _R3, _R4, _R5, _R6, _R7, _R8, _FP = 0, 1, 2, 3, 4, 5, 6, 7, 8, 10
_LOOKUP: Final = 1  # bpf_map_lookup_elem
_LOAD_BYTES: Final = 68  # bpf_skb_load_bytes_relative
_CGROUP: Final = 79  # bpf_skb_cgroup_id
_ANCESTOR: Final = 83  # bpf_skb_ancestor_cgroup_id
_FROM_NETWORK_HEADER: Final = 1
_PROTOCOL: Final = 16  # of __sk_buff
_KEY, _HEADER, _PORTS = -8, -48, -56  # on the stack
_ARP, _IPV4, _IPV6 = (socket.htons(n) for n in (0x0806, 0x0800, 0x86DD))
_TCP, _ICMP6 = 6, 58
_SOLICIT, _REDIRECT = 133, 137  # neighbour discovery lies between
_SSH: Final = 22
MOST_LEVEL: Final = 32  # of a cgroup below the root


class Instructions:
    """Instructions with labels, which are resolved in the end."""

    def __init__(self) -> None:
        self._out: list[bytes] = []
        self._labels: dict[str, int] = {}
        self._jumps: dict[int, str] = {}

    def emit(self, code: int, to: int = 0, by: int = 0, offset: int = 0, number: int = 0) -> None:
        registers = (by << 4 | to) if struct.pack("=H", 1)[0] else (to << 4 | by)
        self._out.append(struct.pack("=BBhi", code, registers, offset, number))

    def copy(self, to: int, by: int) -> None:
        self.emit(0xBF, to, by)

    def put(self, to: int, number: int) -> None:
        self.emit(0xB7, to, number=number)

    def add(self, to: int, number: int) -> None:
        self.emit(0x07, to, number=number)

    def call(self, helper: int) -> None:
        self.emit(0x85, number=helper)

    def table(self, to: int, of: Map) -> None:
        self.emit(0x18, to, 1, number=of.fd)
        self.emit(0)

    def load(self, size: str, to: int, by: int, offset: int) -> None:
        self.emit({"B": 0x71, "H": 0x69, "W": 0x61, "D": 0x79}[size], to, by, offset)

    def store(self, to: int, by: int, offset: int) -> None:
        self.emit(0x7B, to, by, offset)

    def jump_if(self, register: int, number: int, label: str, *, unless: bool = False) -> None:
        self._jumps[len(self._out)] = label
        self.emit(0x55 if unless else 0x15, register, number=number)

    def jump_if_above(self, register: int, number: int, label: str) -> None:
        self._jumps[len(self._out)] = label
        self.emit(0x25, register, number=number)

    def jump(self, label: str) -> None:
        self._jumps[len(self._out)] = label
        self.emit(0x05)

    def label(self, name: str) -> None:
        self._labels[name] = len(self._out)

    def answer(self, number: int) -> None:
        self.put(_R0, number)
        self.emit(0x95)

    def bytes(self) -> bytes:
        for at, label in self._jumps.items():
            code, registers, _, number = struct.unpack("=BBhi", self._out[at])
            self._out[at] = struct.pack("=BBhi", code, registers, self._labels[label] - at - 1, number)
        return b"".join(self._out)


def classifier(levels: Iterable[int], classes: Map, names: Map, system: int) -> bytes:
    """`levels`: how deep the cgroups lie that have a class; the deepest decides. `system`: the class of what must pass.

    The program does not read the names: it holds both tables, so that they last as long as the filter does.
    """
    code = Instructions()
    code.copy(_R6, _R1)
    for held in (names, classes):
        code.table(_R1, held)
    for level in sorted(set(levels), reverse=True):
        _by_cgroup(code, level, classes)
    code.load("W", _R7, _R6, _PROTOCOL)
    code.jump_if(_R7, _ARP, "system")
    code.jump_if(_R7, _IPV6, "v6")
    code.jump_if(_R7, _IPV4, "other", unless=True)
    _v4(code)
    code.label("v6")
    _v6(code)
    code.label("local")
    _ssh(code)
    code.label("other")
    code.answer(0)
    code.label("system")
    code.answer(system)
    return code.bytes()


def _by_cgroup(code: Instructions, level: int, classes: Map) -> None:
    """The ancestor at that level of the cgroup that the socket was made in: 0 for a packet without a socket."""
    code.copy(_R1, _R6)
    code.put(_R2, level)
    code.call(_ANCESTOR)
    code.store(_FP, _R0, _KEY)
    code.table(_R1, classes)
    code.copy(_R2, _FP)
    code.add(_R2, _KEY)
    code.call(_LOOKUP)
    code.jump_if(_R0, 0, f"above {level}")
    code.load("W", _R0, _R0, 0)
    code.emit(0x95)
    code.label(f"above {level}")


def _v4(code: Instructions) -> None:
    _read(code, 0, 20, _HEADER)
    code.load("B", _R7, _FP, _HEADER + 9)
    code.jump_if(_R7, _TCP, "other", unless=True)
    code.load("B", _R8, _FP, _HEADER)
    code.emit(0x57, _R8, number=0xF)  # words of the header
    code.emit(0x67, _R8, number=2)
    code.jump("local")


def _v6(code: Instructions) -> None:
    """Neighbours must hear from us, or nobody does; only the kernel itself asks for them."""
    _read(code, 0, 40, _HEADER)
    code.put(_R8, 40)
    code.load("B", _R7, _FP, _HEADER + 6)
    code.jump_if(_R7, _TCP, "local")
    code.jump_if(_R7, _ICMP6, "other", unless=True)
    _read(code, 40, 1, _PORTS)
    code.load("B", _R7, _FP, _PORTS)
    code.add(_R7, -_SOLICIT)
    code.jump_if_above(_R7, _REDIRECT - _SOLICIT, "other")
    code.jump("system")


def _ssh(code: Instructions) -> None:
    """Of a socket of this machine: what is merely forwarded could be anybody's flood. R8: where the ports are."""
    code.copy(_R1, _R6)
    code.call(_CGROUP)
    code.jump_if(_R0, 0, "other")
    code.copy(_R1, _R6)
    code.copy(_R2, _R8)
    _into(code, 4, _PORTS)
    for port in (_PORTS, _PORTS + 2):
        code.load("H", _R7, _FP, port)
        code.jump_if(_R7, socket.htons(_SSH), "system")


def _read(code: Instructions, offset: int, count: int, at: int) -> None:
    code.copy(_R1, _R6)
    code.put(_R2, offset)
    _into(code, count, at)


def _into(code: Instructions, count: int, at: int) -> None:
    """The packet is in R1, the offset in R2."""
    code.copy(_R3, _FP)
    code.add(_R3, at)
    code.put(_R4, count)
    code.put(_R5, _FROM_NETWORK_HEADER)
    code.call(_LOAD_BYTES)
    code.jump_if(_R0, 0, "other", unless=True)
