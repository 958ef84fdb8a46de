"""Hosts that share a switch: a network namespace each, so that one machine stands for several and cables can be pulled.

with wired(3) as network:
    subprocess.run([*network.hosts[0].inside, "ip", "-br", "address"])
    network.pull(network.hosts[0])
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple

numbers = count()


class Machine(NamedTuple):
    """`inside` goes before a command that runs there. Mounts stay: a host of the fleet has this machine's cgroups."""

    name: str
    address: str
    cable: str  # its end at the switch

    @property
    def inside(self) -> tuple[str, ...]:
        return ("nsenter", f"--net=/run/netns/{self.name}")


class Network:
    """The switch is a bridge of this machine, so that the test itself reaches every host."""

    def __init__(self, size: int) -> None:
        self._switch = f"jf{os.getpid() % 10**6}x{next(numbers)}"
        subnet = f"10.{213 + os.getpid() // 256 % 40}.{os.getpid() % 256}"
        self._own = f"{subnet}.254/24"
        self.hosts = tuple(
            Machine(f"{self._switch}h{n}", f"{subnet}.{n + 1}", f"{self._switch}c{n}") for n in range(size)
        )

    def build(self) -> None:
        ip("link", "add", self._switch, "type", "bridge")
        ip("address", "add", self._own, "dev", self._switch)
        ip("link", "set", self._switch, "up")
        for host in self.hosts:
            ip("netns", "add", host.name)
            ip("link", "add", host.cable, "type", "veth", "peer", "name", "eth0", "netns", host.name)
            ip("link", "set", host.cable, "master", self._switch, "up")
            ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", "eth0")
            ip("-n", host.name, "link", "set", "eth0", "up")
            ip("-n", host.name, "link", "set", "lo", "up")

    def pull(self, host: Machine) -> None:
        """Nothing gets in or out, and nobody is told."""
        ip("link", "set", host.cable, "down")

    def plug(self, host: Machine) -> None:
        ip("link", "set", host.cable, "up")

    def remove(self) -> None:
        """Whatever is there of it, also after half a build."""
        for host in self.hosts:
            subprocess.run(["ip", "netns", "delete", host.name], check=False, capture_output=True)
            subprocess.run(["ip", "link", "delete", host.cable], check=False, capture_output=True)
        subprocess.run(["ip", "link", "delete", self._switch], check=False, capture_output=True)


@contextmanager
def wired(size: int) -> Iterator[Network]:
    network = Network(size)
    try:
        network.build()
        yield network
    finally:
        network.remove()


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
