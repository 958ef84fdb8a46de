"""A real systemd, whose units these tests make, adopt and give back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from j10ce.host.mounts import Hierarchies
from j10ce.kernel.dbus import Connection
from j10ce.kernel.systemd import Nursery, UnitProperties
from j10ce.kernel.systemd_tree import SystemdTree
from j10ce.kernel.units import Units

ROOT = Path("/sys/fs/cgroup")
SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]


class Systemd:
    """Tree and back end of one agent, with the connection they share."""

    def __init__(self, connection: Connection, units: Units, top: str) -> None:
        hierarchies = Hierarchies.discover()
        self.units = units
        self.connection = connection
        self.nursery = Nursery()
        self.backend = UnitProperties(units, hierarchies, self.nursery)
        self.tree = SystemdTree(units, hierarchies, self.nursery, self.backend, top)


@pytest.fixture
def systemd() -> Iterator[Systemd]:
    connection = Connection(timeout_s=60)
    yield Systemd(connection, Units(connection), "j10ce")
    connection.close()
    left = systemctl("list-units", "--all", "--plain", "--no-legend", "j10ce*").split()
    assert not left, "a test leaves no unit behind"


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str, **options: object) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(command or ["sleep", "600"], **options))  # type: ignore[call-overload]
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def systemctl(*arguments: str) -> str:
    return subprocess.run(["systemctl", *arguments], check=True, capture_output=True, text=True).stdout


def cgroup_files(path: str, *names: str) -> dict[str, str]:
    """What the kernel says; a file that is not there is left out."""
    found = {name: ROOT / path / name for name in names}
    return {name: file.read_text().strip() for name, file in found.items() if file.exists()}
