"""A real systemd, whose units these tests make, adopt and give back."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from j10ce.kernel.systemd.dbus import Connection
from j10ce.kernel.systemd.units import Units
from tests.systemd.units import AS_USER, ENV, UID, Systemd, systemctl


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
