"""What a real systemd says of units, and what the kernel says of their cgroups."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from j10ce.host.mounts import Hierarchies
from j10ce.kernel.disk.controller import IoController
from j10ce.kernel.disk.files import DiskFiles
from j10ce.kernel.systemd.dbus import Connection
from j10ce.kernel.systemd.disks import UnitDisks
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
        self.disks = UnitDisks(units, hierarchies, self.nursery, DiskFiles(IoController(hierarchies)))
        self.tree = SystemdTree(units, hierarchies, self.nursery, self.backend, self.disks, top)


def systemctl(*arguments: str) -> str:
    return subprocess.run(["systemctl", *arguments], check=True, capture_output=True, text=True).stdout


def cgroup_files(path: str, *names: str) -> dict[str, str]:
    """What the kernel says; a file that is not there is left out."""
    paths = {name: ROOT / path / name for name in names}
    return {name: file.read_text().strip() for name, file in paths.items() if file.exists()}


def shown(unit: str) -> dict[str, list[str]]:
    return properties(systemctl("show", unit))


def properties(text: str) -> dict[str, list[str]]:
    lines = text.splitlines()
    return {k: sorted(v.split()) for k, _, v in (line.partition("=") for line in lines if not FORGETS.match(line))}


def drop_ins(unit: str) -> dict[str, str]:
    folders = ("/run/systemd/system.control", "/run/systemd/transient", "/etc/systemd/system.control")
    files = (file for folder in folders for file in Path(folder, f"{unit}.d").glob("*"))
    return {str(file): file.read_text() for file in files}
