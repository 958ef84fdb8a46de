"""The program that says which class a packet belongs to: by its socket's cgroup or its door, then by what never waits.

Written in the kernel's own instructions, 8 bytes each, so that nothing has to be compiled, shipped or linked. It
returns the class, or 0 for a packet that it knows nothing of, which is then in the class of everybody else.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from j10ce.host.net.bpf import Map
from j10ce.host.net.classes import CLASSES, DOORS

R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FP = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
LOOKUP: Final = 1  # bpf_map_lookup_elem
_LOAD_BYTES: Final = 68  # bpf_skb_load_bytes_relative
_CGROUP: Final = 79  # bpf_skb_cgroup_id
ANCESTOR: Final = 83  # bpf_skb_ancestor_cgroup_id
_FROM_NETWORK_HEADER: Final = 1
PROTOCOL: Final = 16  # of __sk_buff
_CAME_BY: Final = 36
TC_INDEX: Final = 44
KEY, HEADER, _PORTS = -8, -48, -56  # on the stack
_ARP, IPV4, IPV6 = (socket.htons(n) for n in (0x0806, 0x0800, 0x86DD))
TCP, _ICMP6 = 6, 58
_SOLICIT, _REDIRECT = 133, 137  # neighbour discovery lies between
SSH: Final = 22
STAMPED: Final = -0x8000_0000  # in the key of a stamp, as no number of a link has it
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

    def store_as(self, size: str, to: int, by: int, offset: int) -> None:
        self.emit({"B": 0x73, "H": 0x6B, "W": 0x63}[size], to, by, offset)

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
        self.put(R0, number)
        self.emit(0x95)

    def bytes(self) -> bytes:
        for at, label in self._jumps.items():
            code, registers, _, number = struct.unpack("=BBhi", self._out[at])
            self._out[at] = struct.pack("=BBhi", code, registers, self._labels[label] - at - 1, number)
        return b"".join(self._out)


Learn = Callable[[Instructions], None]


def classifier(
    levels: Iterable[int],
    maps: Mapping[str, Map],
    system: int,
    past: int | None = None,
    *,
    doors: bool = False,
    learn: Learn | None = None,
) -> bytes:
    """`levels`: how deep the cgroups lie that have a class; the deepest decides. `system`: the class of what must pass.

    `past`: where nothing is divided, the answer for all that has no class; it need not be looked at any further.
    `doors`: whether some class has one. `learn`: notes where a packet from there goes.

    The program does not read the names: it holds all tables, so that they last as long as the filter does.
    """
    code = Instructions()
    code.copy(R6, R1)
    for held in maps.values():
        code.table(R1, held)
    for level in sorted(set(levels), reverse=True):
        _by_cgroup(code, level, maps[CLASSES])
    if doors:
        _by_door(code, maps[DOORS], learn)
    if past is not None:
        code.answer(past)
        return code.bytes()
    code.load("W", R7, R6, PROTOCOL)
    code.jump_if(R7, _ARP, "system")
    code.jump_if(R7, IPV6, "v6")
    code.jump_if(R7, IPV4, "other", unless=True)
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
    code.copy(R1, R6)
    code.put(R2, level)
    code.call(ANCESTOR)
    code.store(FP, R0, KEY)
    code.table(R1, classes)
    code.copy(R2, FP)
    code.add(R2, KEY)
    code.call(LOOKUP)
    code.jump_if(R0, 0, f"above {level}")
    code.load("W", R0, R0, 0)
    code.emit(0x95)
    code.label(f"above {level}")


def _by_door(code: Instructions, doors: Map, learn: Learn | None) -> None:
    """By which link it came in, which nobody outside can feign; then by the stamp that it has from there."""
    code.load("W", R7, R6, _CAME_BY)
    _look_up_door(code, doors, "stamp")
    code.label("stamp")
    code.load("W", R7, R6, TC_INDEX)
    code.emit(0x44, R7, number=STAMPED)
    _look_up_door(code, doors, "no door")
    code.label("door")
    if learn is not None:
        learn(code)
    code.copy(R0, R9)
    code.emit(0x95)
    code.label("no door")


def _look_up_door(code: Instructions, doors: Map, otherwise: str) -> None:
    code.store_as("W", FP, R7, KEY)
    code.table(R1, doors)
    code.copy(R2, FP)
    code.add(R2, KEY)
    code.call(LOOKUP)
    code.jump_if(R0, 0, otherwise)
    code.load("W", R9, R0, 0)
    code.jump("door")


def _v4(code: Instructions) -> None:
    load_bytes(code, 0, 20, HEADER, "other")
    code.load("B", R7, FP, HEADER + 9)
    code.jump_if(R7, TCP, "other", unless=True)
    code.load("B", R8, FP, HEADER)
    code.emit(0x57, R8, number=0xF)  # words of the header
    code.emit(0x67, R8, number=2)
    code.jump("local")


def _v6(code: Instructions) -> None:
    """Neighbours must hear from us, or nobody does; only the kernel itself asks for them."""
    load_bytes(code, 0, 40, HEADER, "other")
    code.put(R8, 40)
    code.load("B", R7, FP, HEADER + 6)
    code.jump_if(R7, TCP, "local")
    code.jump_if(R7, _ICMP6, "other", unless=True)
    load_bytes(code, 40, 1, _PORTS, "other")
    code.load("B", R7, FP, _PORTS)
    code.add(R7, -_SOLICIT)
    code.jump_if_above(R7, _REDIRECT - _SOLICIT, "other")
    code.jump("system")


def _ssh(code: Instructions) -> None:
    """Of a socket of this machine: what is merely forwarded could be anybody's flood. R8: where the ports are."""
    code.copy(R1, R6)
    code.call(_CGROUP)
    code.jump_if(R0, 0, "other")
    code.copy(R1, R6)
    code.copy(R2, R8)
    load_bytes(code, None, 4, _PORTS, "other")
    for port in (_PORTS, _PORTS + 2):
        code.load("H", R7, FP, port)
        code.jump_if(R7, socket.htons(SSH), "system")


def load_bytes(code: Instructions, offset: int | None, count: int, at: int, otherwise: str) -> None:
    """From the network header on, to the stack; without an offset the packet is in R1 and the offset in R2 already."""
    if offset is not None:
        code.copy(R1, R6)
        code.put(R2, offset)
    code.copy(R3, FP)
    code.add(R3, at)
    code.put(R4, count)
    code.put(R5, _FROM_NETWORK_HEADER)
    code.call(_LOAD_BYTES)
    code.jump_if(R0, 0, otherwise, unless=True)
