"""Network namespaces on one bridge, each a host of its own, that can be parted from each other.

with bridged(3) as network:
    network.part(0, 1)        # 0 and 1 do not hear each other; this process hears both
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.etcd.cluster import Host


class Network:
    """Made by `bridged`. Names carry this process's number, so that several runs do not meet."""

    def __init__(self, count: int) -> None:
        self._id = os.getpid() % 100_000
        self._net = f"10.{200 + self._id // 250 % 50}.{self._id % 250}"
        self._bridge = f"j10e{self._id}"
        self._parted: set[tuple[int, int]] = set()
        self.names = tuple(f"j10e{self._id}-{n}" for n in range(count))
        # Not `ip netns exec`: it mounts a /sys of its own, without cgroups.
        inside = (("nsenter", f"--net=/run/netns/{name}") for name in self.names)
        self.hosts = tuple(Host(self.address(n), words) for n, words in enumerate(inside))

    def address(self, n: int) -> str:
        return f"{self._net}.{n + 10}"

    def part(self, a: int, b: int) -> None:
        """Neither hears the other. Packets are dropped silently, as on a broken line."""
        if (a, b) not in self._parted:
            self._parted |= {(a, b), (b, a)}
            self._route(a, b, "add")
            self._route(b, a, "add")

    def join(self, a: int, b: int) -> None:
        if (a, b) in self._parted:
            self._parted -= {(a, b), (b, a)}
            self._route(a, b, "del")
            self._route(b, a, "del")

    def isolate(self, n: int) -> None:
        """From all others, but not from this process."""
        for other in range(len(self.names)):
            if other != n:
                self.part(n, other)

    def heal(self) -> None:
        for a, b in tuple(self._parted):
            self.join(a, b)

    def build(self) -> None:
        ip("link", "add", self._bridge, "type", "bridge")
        ip("addr", "add", f"{self._net}.1/24", "dev", self._bridge)
        ip("link", "set", self._bridge, "up")
        for n, name in enumerate(self.names):
            ip("netns", "add", name)
            ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", name, "master", self._bridge, "up")
            ip("-n", name, "addr", "add", f"{self.address(n)}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def remove(self) -> None:
        for name in self.names:
            ip("link", "del", name, check=False)
            ip("netns", "del", name, check=False)
        ip("link", "del", self._bridge, check=False)

    def _route(self, at: int, to: int, verb: str) -> None:
        ip("-n", self.names[at], "route", verb, "blackhole", f"{self.address(to)}/32")


@contextmanager
def bridged(count: int) -> Iterator[Network]:
    network = Network(count)
    try:
        network.build()
        yield network
    finally:
        network.remove()


def ip(*words: str, check: bool = True) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
