"""The program that sends what comes in through a queue of ours: with its socket, where it is for one of this machine.

So the classes are found as on the way out, by the cgroup of the socket, also for whoever only listens.
"""

from __future__ import annotations

from typing import Final

from j10ce.kernel.net.program import (
    FP,
    HEADER,
    IPV4,
    IPV6,
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    TCP,
    Instructions,
    load_bytes,
)

_REDIRECT: Final = 23  # bpf_redirect
_LOOKUP_UDP: Final = 85  # bpf_sk_lookup_udp
_RELEASE: Final = 86  # bpf_sk_release
_LOOKUP_TCP: Final = 99  # bpf_skc_lookup_tcp
_ASSIGN: Final = 124  # bpf_sk_assign
_PROTOCOL: Final = 16  # of __sk_buff
_UDP: Final = 17
_TUPLE: Final = -96  # on the stack: addresses, then ports
_HERE: Final = -1  # the network namespace of the link


def director(queue: int) -> bytes:
    """`queue`: the link that the packets are to wait on."""
    code = Instructions()
    code.copy(R6, R1)
    code.load("W", R7, R6, _PROTOCOL)
    code.jump_if(R7, IPV6, "v6")
    code.jump_if(R7, IPV4, "on", unless=True)
    _v4(code)
    code.label("v6")
    _v6(code)
    code.label("on")
    code.put(R1, queue)
    code.put(R2, 0)
    code.call(_REDIRECT)
    code.emit(0x95)
    return code.bytes()


def _v4(code: Instructions) -> None:
    load_bytes(code, 0, 20, HEADER, "on")
    code.load("B", R8, FP, HEADER)
    code.emit(0x57, R8, number=0xF)  # words of the header
    code.emit(0x67, R8, number=2)
    load_bytes(code, 12, 8, _TUPLE, "on")
    _ports(code, 8)
    code.load("B", R7, FP, HEADER + 9)
    _assign(code, 12, "4")


def _v6(code: Instructions) -> None:
    """Without extension headers: what has some waits with everybody else."""
    load_bytes(code, 0, 40, HEADER, "on")
    code.put(R8, 40)
    load_bytes(code, 8, 32, _TUPLE, "on")
    _ports(code, 32)
    code.load("B", R7, FP, HEADER + 6)
    _assign(code, 36, "6")


def _ports(code: Instructions, at: int) -> None:
    """R8: where they are in the packet."""
    code.copy(R1, R6)
    code.copy(R2, R8)
    load_bytes(code, None, 4, _TUPLE + at, "on")


def _assign(code: Instructions, size: int, family: str) -> None:
    """R7: the protocol above IP. A packet that finds no socket goes on without one."""
    code.jump_if(R7, TCP, f"tcp {family}")
    code.jump_if(R7, _UDP, "on", unless=True)
    _look_up(code, size, _LOOKUP_UDP)
    code.jump(f"found {family}")
    code.label(f"tcp {family}")
    _look_up(code, size, _LOOKUP_TCP)
    code.label(f"found {family}")
    code.copy(R7, R0)
    code.copy(R1, R6)
    code.copy(R2, R7)
    code.put(R3, 0)
    code.call(_ASSIGN)
    code.copy(R1, R7)
    code.call(_RELEASE)
    code.jump("on")


def _look_up(code: Instructions, size: int, helper: int) -> None:
    code.copy(R1, R6)
    code.copy(R2, FP)
    code.add(R2, _TUPLE)
    code.put(R3, size)
    code.put(R4, _HERE)
    code.put(R5, 0)
    code.call(helper)
    code.jump_if(R0, 0, "on")
