"""A network namespace of a test's own, joined to a second one by a veth pair: nothing of the machine's is touched."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

NEWNET = 0x40000000
numbers = count()
libc = ctypes.CDLL(None, use_errno=True)


class Netns:
    """`eth0` here is 192.0.2.1; the peer, in a namespace of its own, is 192.0.2.2 and the way to everywhere."""

    def __init__(self) -> None:
        self.name = f"j10cetest-{os.getpid()}-{next(numbers)}"
        self.peer = f"{self.name}-peer"
        self._made: list[str] = []

    def build(self, address: str = "192.0.2") -> None:
        for name in (self.name, self.peer):
            if problem := ip("netns", "add", name):
                pytest.skip(f"Unsupported: network namespaces ({problem})")
            self._made.append(name)
        where = ("netns", self.name), ("netns", self.peer)
        pair = ("link", "add", "eth0", *where[0], "type", "veth", "peer", "name", "eth0", *where[1])
        if problem := ip(*pair):
            self.clear()
            pytest.skip(f"Unsupported: veth pairs ({problem})")
        for name, last in ((self.name, 1), (self.peer, 2)):
            self.ip("addr", "add", f"{address}.{last}/24", "dev", "eth0", at=name)
            for link in ("lo", "eth0"):
                self.ip("link", "set", link, "up", at=name)
        self.ip("route", "add", "default", "via", f"{address}.2")

    def ip(self, *words: str, at: str = "") -> str:
        problem = ip("-n", at or self.name, *words)
        assert not problem, problem
        return problem

    def run(self, *command: str, at: str = "") -> str:
        """What a command prints there. Not `ip netns exec`, which mounts a /sys of its own, without cgroups."""
        inside = ("nsenter", f"--net=/run/netns/{at or self.name}", *command)
        return subprocess.run(inside, check=True, capture_output=True, text=True).stdout

    @contextmanager
    def inside(self, at: str = "") -> Iterator[None]:
        """This thread is there; sockets that it opens stay there."""
        here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        there = os.open(f"/run/netns/{at or self.name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            assert libc.setns(there, NEWNET) == 0, os.strerror(ctypes.get_errno())
            yield
        finally:
            assert libc.setns(here, NEWNET) == 0
            os.close(here)
            os.close(there)

    def clear(self) -> None:
        for name in self._made:
            ip("netns", "del", name)
        self._made.clear()


def ip(*words: str) -> str:
    """The complaint, or nothing."""
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode else ""
