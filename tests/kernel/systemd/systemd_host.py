"""What an agent has on a systemd host, over a fake one."""

from __future__ import annotations

from j10ce.kernel.disk.controller import IoController
from j10ce.kernel.disk.files import DiskFiles
from j10ce.kernel.systemd.disks import UnitDisks
from j10ce.kernel.systemd.properties import Nursery, UnitProperties
from j10ce.kernel.systemd.tree import SystemdTree
from j10ce.kernel.systemd.units import Units
from j10ce.testing.fake_systemd import FakeSystemd


class Host:
    def __init__(self, systemd: FakeSystemd, *, user: bool = False, top: str = "j10ce") -> None:
        self.systemd = systemd
        self.units = Units(systemd, str(systemd.run), user=user)
        self.nursery = Nursery()
        self.backend = UnitProperties(self.units, systemd.hierarchies, self.nursery)
        self.disks = UnitDisks(
            self.units, systemd.hierarchies, self.nursery, DiskFiles(IoController(systemd.hierarchies))
        )
        self.tree = SystemdTree(self.units, systemd.hierarchies, self.nursery, self.backend, self.disks, top)

    def calls(self, member: str) -> list[tuple[object, ...]]:
        return [body for name, body in self.systemd.calls if name == member]
