"""What was measured of a disk, and what follows from it: what it can do, and what an I/O of it costs (io.cost)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from j10ce.model.machine.disk import Disk

FORMAT: Final = 1
# io.cost slows down when more I/O than one in twenty is slower than this many times what the slowest twentieth took.
PATIENCE: Final = 4.0
LEAST_LATENCY_US: Final = 100
MOST_LATENCY_US: Final = 1_000_000
SLOWEST_PACE: Final = 50  # percent of the model, that io.cost may go down and up to
FASTEST_PACE: Final = 150


class Speed(Struct, frozen=True):
    """In one direction. Zero: not measured."""

    bps: int = 0  # bytes a second, in long I/O one after the other
    seq_iops: int = 0  # operations a second of 4 KiB, one after the other
    iops: int = 0  # the same anywhere
    slow_us: int = 0  # so long or longer took the slowest twentieth of those anywhere


class Calibration(Struct, frozen=True):
    """Of one disk; kept by what it is called whatever its number."""

    name: str
    size: int
    read: Speed
    write: Speed = Speed()
    at: float = 0.0  # wall clock
    quick: bool = False

    @property
    def whole(self) -> bool:
        return all(n > 0 for speed in (self.read, self.write) for n in (speed.bps, speed.seq_iops, speed.iops))


class Calibrated(Struct, frozen=True):
    """The file of all of them."""

    format: int = FORMAT
    disks: Mapping[str, Calibration] = field(default_factory=dict)


def known(disk: Disk, calibration: Calibration | None) -> Disk:
    """The disk with what was measured of it; itself where nothing was, or where it has another size since."""
    if calibration is None or calibration.size != disk.size:
        return disk
    read, write = calibration.read, calibration.write
    divides = disk.queued and not disk.below and calibration.whole
    return replace(
        disk,
        read_bps=max(0, read.bps),
        write_bps=max(0, write.bps),
        read_iops=max(0, read.iops),
        write_iops=max(0, write.iops),
        model=model(calibration) if divides else "",
        qos=qos(calibration) if divides else "",
    )


def model(c: Calibration) -> str:
    """As io.cost.model takes it."""
    reads = f"rbps={c.read.bps} rseqiops={c.read.seq_iops} rrandiops={c.read.iops}"
    return f"ctrl=user model=linear {reads} wbps={c.write.bps} wseqiops={c.write.seq_iops} wrandiops={c.write.iops}"


def qos(c: Calibration) -> str:
    """As io.cost.qos takes it."""
    read, write = _latency(c.read.slow_us), _latency(c.write.slow_us)
    pace = f"min={SLOWEST_PACE}.00 max={FASTEST_PACE}.00"
    return f"enable=1 ctrl=user rpct=95.00 rlat={read} wpct=95.00 wlat={write} {pace}"


def _latency(slow_us: int) -> int:
    return int(min(MOST_LATENCY_US, max(LEAST_LATENCY_US, slow_us * PATIENCE)))
