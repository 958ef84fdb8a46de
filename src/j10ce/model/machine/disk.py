"""A block device of this machine, as far as decisions look at it. Zero: not known, it was not calibrated."""

from __future__ import annotations

from msgspec import Struct


class Disk(Struct, frozen=True):
    number: str  # `8:0`
    name: str = ""
    serial: str = ""
    managed: bool = False  # what uses it is divided there
    read_bps: int = 0  # bytes per second
    write_bps: int = 0
    read_iops: int = 0
    write_iops: int = 0
    model: str = ""  # of io.cost, as the kernel spells it after the number; empty: none was measured
    qos: str = ""
    rotational: bool = False
    scheduler: str = ""
    holds: tuple[str, ...] = ()  # mount points

    @property
    def calibrated(self) -> bool:
        return self.read_bps > 0 and self.write_bps > 0
