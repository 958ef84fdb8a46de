"""Numbers out of kernel files without parsing them, and rates out of counters."""

from __future__ import annotations

from typing import Final

CLOSE_EVERY: Final = 2  # samples, of a workload that is looked at closely: a share of what is read slowly


def pick(text: bytes, key: bytes, until: bytes = b"\n") -> int | None:
    """The whole number between the first `key` and `until`; None where either is missing.

    A key that could also end another one is given with what stands before it: `b"\\ninactive_file "`.
    """
    at = text.find(key)
    if at < 0:
        return None
    at += len(key)
    end = text.find(until, at)
    return int(text[at:end]) if end >= 0 else None


def transferred(io_stat: bytes) -> int:
    """Bytes read and written, of all devices: `8:0 rbytes=4096 wbytes=0 rios=1 …`, one line each."""
    words = io_stat.split()
    return sum(int(w[7:]) for w in words if w.startswith((b"rbytes=", b"wbytes=")))


class Rate:
    """How fast a counter grows, per second.

    No value for the first reading, nor when clock or counter went back: a cgroup made again, a counter reset.
    """

    __slots__ = ("_at", "_count")

    def __init__(self) -> None:
        self._at = 0.0
        self._count = -1

    def of(self, now: float, count: int) -> float | None:
        known, grown, passed = self._count >= 0, count - self._count, now - self._at
        self._count = count
        self._at = now
        return grown / passed if known and grown >= 0 and passed > 0 else None
