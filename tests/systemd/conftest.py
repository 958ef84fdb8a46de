"""A real systemd, whose units these tests make, adopt and give back."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from j10ce.host.mounts import Hierarchies
from j10ce.kernel.systemd.dbus import Connection
from j10ce.kernel.systemd.properties import Nursery, UnitProperties
from j10ce.kernel.systemd.tree import SystemdTree
from j10ce.kernel.systemd.units import Units

ROOT = Path("/sys/fs/cgroup")
SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
UID = 1000
AS_USER = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
ENV = {"XDG_RUNTIME_DIR": f"/run/user/{UID}", "PATH": "/usr/bin:/bin"}
# What any reload does to any service: systemd forgets when a command was started, and lists in another order.
FORGETS = re.compile(r"^(ExecStart|ExecStartEx|Memory(Current|Available)|CPUUsageNSec|Tasks\w+|IP.*|IO.*)=")


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


def shown(unit: str) -> dict[str, list[str]]:
    return properties(systemctl("show", unit))


def properties(text: str) -> dict[str, list[str]]:
    lines = text.splitlines()
    return {k: sorted(v.split()) for k, _, v in (line.partition("=") for line in lines if not FORGETS.match(line))}


def drop_ins(unit: str) -> dict[str, str]:
    folders = ("/run/systemd/system.control", "/run/systemd/transient", "/etc/systemd/system.control")
    found = (file for folder in folders for file in Path(folder, f"{unit}.d").glob("*"))
    return {str(file): file.read_text() for file in found}


@pytest.fixture
def anyone() -> None:
    """Other users may run this interpreter, which may lie in root's home; only the guest's own overlay changes."""
    for above in Path(os.path.realpath(sys.executable)).parents:
        above.chmod(above.stat().st_mode | 0o011)


@pytest.fixture
def user(anyone: None) -> Iterator[str]:
    try:
        name = pwd.getpwuid(UID).pw_name
    except KeyError:
        subprocess.run(["useradd", "--uid", str(UID), "--create-home", "lab"], check=True)
        name = "lab"
    systemctl("start", f"user@{UID}.service")
    subprocess.run([*AS_USER, "systemctl", "--user", "start", "dbus.service"], env=ENV, check=True)
    yield name
    systemctl("stop", f"user@{UID}.service")
