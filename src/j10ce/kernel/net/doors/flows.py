"""Conversations of networks behind doors, by which what comes back to them is known.

A packet that comes in by a link is for an address that may be translated later, so nothing of it says whose it is. But
whoever is behind a door has most often sent first, or answers: what leaves by the link is noted as it would come back,
and what comes in is looked up. Of TCP and UDP; what is noted longest ago is forgotten where there is no room.
"""

from __future__ import annotations

import socket
import struct
from typing import Final

from j10ce.host.net.bpf import Map
from j10ce.host.net.classes import FLOWS
from j10ce.kernel.net.program import (
    FP,
    HEADER,
    IPV4,
    IPV6,
    KEY,
    LOOKUP,
    PROTOCOL,
    R0,
    R1,
    R2,
    R3,
    R4,
    R6,
    R7,
    R8,
    R9,
    TCP,
    Instructions,
    load_bytes,
)

MOST: Final = 16_384
FLOW: Final = struct.Struct("=16s16s2s2sI")  # the address there and here, the port there and here, the protocol
_AT: Final = -104  # of a flow on the stack
_THERE, _HERE, _PORT_THERE, _PORT_HERE, _KIND = 0, 16, 32, 34, 36
_PORTS: Final = -56
_PRIORITY: Final = 32  # of __sk_buff
_UPDATE: Final = 2  # bpf_map_update_elem
_UDP: Final = 17
_FRAGMENT: Final = socket.htons(0x1FFF)  # where it is in the whole: the first alone has ports


def new() -> Map:
    return Map.create(FLOWS, FLOW.size, 4, MOST, forgets=True)


def learn(code: Instructions, flows: Map) -> None:
    """Of a packet that leaves. KEY: by what its door was known; R9 stays."""
    _read(code, "learnt", incoming=False)
    _find(code, flows)
    code.jump_if(R0, 0, "unknown")
    code.load("W", R1, R0, 0)
    code.load("W", R2, FP, KEY)
    code.emit(0xAF, R1, R2)
    code.jump_if(R1, 0, "learnt")
    code.label("unknown")
    code.table(R1, flows)
    code.copy(R2, FP)
    code.add(R2, _AT)
    code.copy(R3, FP)
    code.add(R3, KEY)
    code.put(R4, 0)
    code.call(_UPDATE)
    code.label("learnt")


def recall(code: Instructions, flows: Map, doors: Map) -> None:
    """Of a packet that comes in: its class becomes its priority. `doors`: of the queue where it is to wait."""
    _read(code, "unknown", incoming=True)
    _find(code, flows)
    code.jump_if(R0, 0, "unknown")
    code.load("W", R7, R0, 0)
    code.store_as("W", FP, R7, KEY)
    code.table(R1, doors)
    code.copy(R2, FP)
    code.add(R2, KEY)
    code.call(LOOKUP)
    code.jump_if(R0, 0, "unknown")
    code.load("W", R9, R0, 0)
    code.store_as("W", R6, R9, _PRIORITY)
    code.label("unknown")


def _find(code: Instructions, flows: Map) -> None:
    code.table(R1, flows)
    code.copy(R2, FP)
    code.add(R2, _AT)
    code.call(LOOKUP)


def _read(code: Instructions, otherwise: str, *, incoming: bool) -> None:
    """The flow of a packet, to the stack."""
    code.put(R7, 0)
    for at in range(_AT, _AT + FLOW.size, 8):
        code.store(FP, R7, at)
    code.load("W", R7, R6, PROTOCOL)
    code.jump_if(R7, IPV6, "flow v6")
    code.jump_if(R7, IPV4, otherwise, unless=True)
    load_bytes(code, 0, 20, HEADER, otherwise)
    code.load("H", R7, FP, HEADER + 6)
    code.emit(0x57, R7, number=_FRAGMENT)
    code.jump_if(R7, 0, otherwise, unless=True)
    _addresses(code, HEADER + 12, 4, incoming=incoming)
    code.load("B", R7, FP, HEADER + 9)
    code.load("B", R8, FP, HEADER)
    code.emit(0x57, R8, number=0xF)  # words of the header
    code.emit(0x67, R8, number=2)
    code.jump("flow ports")
    code.label("flow v6")
    load_bytes(code, 0, 40, HEADER, otherwise)
    _addresses(code, HEADER + 8, 16, incoming=incoming)
    code.load("B", R7, FP, HEADER + 6)
    code.put(R8, 40)
    code.label("flow ports")
    _ports(code, otherwise, incoming=incoming)


def _addresses(code: Instructions, source: int, size: int, *, incoming: bool) -> None:
    for start, to in ((source, _THERE if incoming else _HERE), (source + size, _HERE if incoming else _THERE)):
        for at in range(0, size, 4):
            code.load("W", R7, FP, start + at)
            code.store_as("W", FP, R7, _AT + to + at)


def _ports(code: Instructions, otherwise: str, *, incoming: bool) -> None:
    """R7: the protocol above IP; R8: where the ports are."""
    code.jump_if(R7, TCP, "flow of TCP")
    code.jump_if(R7, _UDP, otherwise, unless=True)
    code.label("flow of TCP")
    code.store_as("W", FP, R7, _AT + _KIND)
    code.copy(R1, R6)
    code.copy(R2, R8)
    load_bytes(code, None, 4, _PORTS, otherwise)
    first, second = (_PORT_THERE, _PORT_HERE) if incoming else (_PORT_HERE, _PORT_THERE)
    for start, to in ((_PORTS, first), (_PORTS + 2, second)):
        code.load("H", R7, FP, start)
        code.store_as("H", FP, R7, _AT + to)
