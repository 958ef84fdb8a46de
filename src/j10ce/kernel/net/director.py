"""The program that sends what comes in through a queue of ours, and says which class each packet waits in.

It finds the socket of this machine that a packet is for, and gives the packet the class of that socket's cgroup as a
priority, which HTB heeds. What goes on is a copy without the socket: whatever has one is never forwarded by the kernel,
and passes by every translation of addresses. For the same reason a socket is no proof by itself: what is forwarded or
translated later meets, by its port, whoever listens here. So packets of TCP count for connections alone, and all for
addresses of this machine.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

from j10ce.host.net.bpf import Map
from j10ce.kernel.net.program import (
    ANCESTOR,
    FP,
    HEADER,
    IPV4,
    IPV6,
    KEY,
    LOOKUP,
    MOST_LEVEL,
    PROTOCOL,
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    SSH,
    TCP,
    Instructions,
    load_bytes,
)

_REDIRECT: Final = 23  # bpf_redirect
_ROUTE: Final = 69  # bpf_fib_lookup
_LOOKUP_TCP: Final = 84  # bpf_sk_lookup_tcp
_LOOKUP_UDP: Final = 85  # bpf_sk_lookup_udp
_RELEASE: Final = 86  # bpf_sk_release
_COPY: Final = 13  # bpf_clone_redirect
_ASSIGN: Final = 124  # bpf_sk_assign
_PRIORITY: Final = 32  # of __sk_buff
_CAME_BY: Final = 40  # ifindex
_STATE: Final = 72  # of bpf_sock
_LISTENS: Final = 10
_UDP: Final = 17
_STOLEN: Final = 4  # TC_ACT_STOLEN
_TUPLE: Final = -96  # on the stack: addresses, then ports
_WAY: Final = -160  # struct bpf_fib_lookup, 64 bytes
_FAMILY, _BY, _FROM, _TO = 0, 8, 16, 32  # in it
_NOT_FORWARDED, _NO_FORWARDING = 4, 5
_HERE: Final = -1  # the network namespace of the link


Recall = Callable[[Instructions], None]


def director(queue: int, classes: Map, system: int, recall: Recall | None = None) -> bytes:
    """`queue`: the link that packets are to wait on; `classes`: by cgroup; `system`: the class of what must pass.

    `recall`: knows conversations of those behind doors.
    """
    code = Instructions()
    code.copy(R6, R1)
    code.load("W", R7, R6, PROTOCOL)
    code.jump_if(R7, IPV6, "v6")
    code.jump_if(R7, IPV4, "on", unless=True)
    _v4(code)
    code.label("v6")
    _v6(code)
    code.label("found")
    _have(code)
    _choose(code, classes, system)
    code.label("copy")
    _pass(code, _COPY, queue)
    code.answer(_STOLEN)
    code.label("release")
    code.copy(R1, R7)
    code.call(_RELEASE)
    code.label("on")
    if recall is not None:
        recall(code)
    _pass(code, _REDIRECT, queue)
    code.emit(0x95)
    return code.bytes()


def _pass(code: Instructions, helper: int, queue: int) -> None:
    if helper == _COPY:
        code.copy(R1, R6)
        code.put(R2, queue)
        code.put(R3, 0)
    else:
        code.put(R1, queue)
        code.put(R2, 0)
    code.call(helper)


def _v4(code: Instructions) -> None:
    load_bytes(code, 0, 20, HEADER, "on")
    code.load("B", R8, FP, HEADER)
    code.emit(0x57, R8, number=0xF)  # words of the header
    code.emit(0x67, R8, number=2)
    load_bytes(code, 12, 8, _TUPLE, "on")
    _ports(code, 8)
    code.load("B", R7, FP, HEADER + 9)
    _find(code, 4)


def _v6(code: Instructions) -> None:
    """Without extension headers: what has some waits with everybody else."""
    load_bytes(code, 0, 40, HEADER, "on")
    code.put(R8, 40)
    load_bytes(code, 8, 32, _TUPLE, "on")
    _ports(code, 32)
    code.load("B", R7, FP, HEADER + 6)
    _find(code, 16)


def _ports(code: Instructions, at: int) -> None:
    """R8: where they are in the packet; then, the ports themselves."""
    code.copy(R1, R6)
    code.copy(R2, R8)
    load_bytes(code, None, 4, _TUPLE + at, "on")
    code.load("W", R8, FP, _TUPLE + at)


def _find(code: Instructions, address: int) -> None:
    """R7: the protocol above IP, then the socket. `address`: the bytes of one."""
    code.jump_if(R7, TCP, f"tcp {address}")
    code.jump_if(R7, _UDP, "on", unless=True)
    _look_up(code, 2 * address + 4, _LOOKUP_UDP)
    code.jump(f"ours {address}")
    code.label(f"tcp {address}")
    _look_up(code, 2 * address + 4, _LOOKUP_TCP)
    code.load("W", R9, R7, _STATE)
    code.jump_if(R9, _LISTENS, "release")
    code.label(f"ours {address}")
    _insist_on_ours(code, address)


def _look_up(code: Instructions, size: int, helper: int) -> None:
    code.copy(R1, R6)
    code.copy(R2, FP)
    code.add(R2, _TUPLE)
    code.put(R3, size)
    code.put(R4, _HERE)
    code.put(R5, 0)
    code.call(helper)
    code.jump_if(R0, 0, "on")
    code.copy(R7, R0)


def _insist_on_ours(code: Instructions, address: int) -> None:
    """A socket of any address is found for what goes on to others as well."""
    code.put(R9, 0)
    for at in range(_WAY, _WAY + 64, 8):
        code.store(FP, R9, at)
    code.put(R9, socket.AF_INET if address == 4 else socket.AF_INET6)
    code.store_as("B", FP, R9, _WAY + _FAMILY)
    code.load("W", R9, R6, _CAME_BY)
    code.store_as("W", FP, R9, _WAY + _BY)
    for start, to in ((_TUPLE, _FROM), (_TUPLE + address, _TO)):
        for at in range(0, address, 4):
            code.load("W", R9, FP, start + at)
            code.store_as("W", FP, R9, _WAY + to + at)
    code.copy(R1, R6)
    code.copy(R2, FP)
    code.add(R2, _WAY)
    code.put(R3, 64)
    code.put(R4, 0)
    code.call(_ROUTE)
    code.jump_if(R0, _NOT_FORWARDED, "found")
    code.jump_if(R0, _NO_FORWARDING, "found")
    code.jump("release")


def _have(code: Instructions) -> None:
    """The packet has the socket in R7 from here on, so that its cgroup may be asked for; one that cannot goes on."""
    code.copy(R1, R6)
    code.copy(R2, R7)
    code.put(R3, 0)
    code.call(_ASSIGN)
    code.copy(R9, R0)
    code.copy(R1, R7)
    code.call(_RELEASE)
    code.jump_if(R9, 0, "on", unless=True)


def _choose(code: Instructions, classes: Map, system: int) -> None:
    """The deepest of the socket's cgroups that has a class decides, then whether it is SSH. R8: the ports."""
    for level in range(MOST_LEVEL, 0, -1):
        code.copy(R1, R6)
        code.put(R2, level)
        code.call(ANCESTOR)
        code.jump_if(R0, 0, f"above {level}")
        code.store(FP, R0, KEY)
        code.table(R1, classes)
        code.copy(R2, FP)
        code.add(R2, KEY)
        code.call(LOOKUP)
        code.jump_if(R0, 0, f"above {level}")
        code.load("W", R9, R0, 0)
        code.jump("classed")
        code.label(f"above {level}")
    code.put(R9, system)
    for shift in (0, 16):
        code.copy(R1, R8)
        code.emit(0x77, R1, number=shift)
        code.emit(0x57, R1, number=0xFFFF)
        code.jump_if(R1, socket.htons(SSH), "classed")
    code.jump("copy")
    code.label("classed")
    code.store_as("W", R6, R9, _PRIORITY)
