"""A block device of this machine, as far as decisions look at it. Zero: not known, it was not calibrated."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

_NUMBER: Final = re.compile(r"(\d{1,7}):(\d{1,7})", re.ASCII)


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
    size: int = 0  # bytes
    kind: str = ""  # dm, md, loop; empty: a device
    below: tuple[str, ...] = ()  # numbers of the disks that it is made of
    queued: bool = False  # has a queue of requests, where weights and io.cost work; what has none takes caps
    uncharged: tuple[str, ...] = ()  # those of `holds` whose write-back is charged to nobody
    read_only: bool = False

    @property
    def calibrated(self) -> bool:
        return self.read_bps > 0 and self.write_bps > 0

    @property
    def lasting(self) -> str:
        """What it is called whatever its number: by its serial, or where it has none by its name and size."""
        return self.serial or f"{self.name}-{self.size}"


def parse_number(text: str) -> tuple[int, int] | None:
    """`8:0` to (8, 0); None for what is no number of a disk."""
    matched = _NUMBER.fullmatch(text)
    return (int(matched[1]), int(matched[2])) if matched else None
