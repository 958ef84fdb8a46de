"""calibrate: what a disk can do, measured once and kept for the agent."""

from __future__ import annotations

import os
import time
from typing import Any, Final

import click

from j10ce.cli.dirs import Dirs
from j10ce.cli.output import dump, say, table, warn
from j10ce.cli.peers import output_option
from j10ce.errors import Busy, QosError
from j10ce.model.machine.calibration import Calibration, known, model, qos
from j10ce.model.machine.disk import Disk
from j10ce.model.resource import spell

SECONDS: Final = 6.0  # each of six works
QUICK_SECONDS: Final = 1.0
MOST: Final = 1 << 30  # bytes of the file
QUICK_MOST: Final = 128 << 20
LOCK: Final = "calibrate.lock"


@click.command("calibrate")
@click.argument("device", type=click.Path(readable=False))
@click.option("--quick", is_flag=True, help="Ten seconds instead of a minute, and less exact.")
@output_option
def calibrate_command(device: str, quick: bool, output: str) -> None:
    """Measure what a disk can do, so that floors of it can be promised.

    It reads and writes by direct I/O, in sequence and anywhere, in a file without a name on a file system of the disk
    (1 GiB, or half of what is free); the kernel takes the file away with this command, however that ends. A disk
    without such a file system is only read, never written to, and what it writes is for a NodeStrategy to say. Others
    who use the disk meanwhile are slowed down, and make it look slower than it is.

    What was measured is kept by the disk's serial number in the agent's state directory. A running agent takes it up
    at its next tick.

    \b
    Example:
      j10ce-qos calibrate /dev/nvme0n1
      j10ce-qos calibrate /dev/sda --quick -o json
    """
    from j10ce.cli.prove.places import disk_of
    from j10ce.daemon.lock import claim
    from j10ce.host.disks import discover
    from j10ce.observe.calibrations import Calibrations

    disks = discover()
    disk = disk_of(device, disks)
    dirs = Dirs.here()
    dirs.make()
    lock = claim(dirs.state / LOCK, str(os.getpid()))
    if lock is None:
        raise Busy("another `calibrate` runs, and each would make the other's disk look slower")
    try:
        calibration, limits = _measure(disk, dict(disks), quick=quick)
        Calibrations(dirs.state).keep(disk, calibration)
    finally:
        os.close(lock)
    if limits:
        warn(f"{', '.join(limits)}: this program was at its limit; {disk.name} does more, so say it in a NodeStrategy")
    _show(disk, calibration, output)


def _measure(disk: Disk, disks: dict[str, Disk], *, quick: bool) -> tuple[Calibration, list[str]]:
    """And what was not the disk's limit but this program's."""
    from j10ce.cli.prove.measuring import Measuring, bound, speed
    from j10ce.cli.prove.places import place
    from j10ce.host.disks import identity

    same = identity(disk.number)
    seconds, most = (QUICK_SECONDS, QUICK_MOST) if quick else (SECONDS, MOST)
    try:
        with place(disk, disks, most) as (opened, filled):
            figures = Measuring(disk.name, seconds).all(opened, filled)
    except OSError as e:
        raise QosError(f"{disk.name} could not be measured: {e.strerror or e}{_gone(disk, same)}; {KEPT}") from None
    if identity(disk.number) != same:
        raise QosError(f"{disk.name} went away while it was measured; {KEPT}")
    now = time.time()  # noqa: TID251 a command has no other clock
    reads, writes = speed(figures, "reads"), speed(figures, "writes")
    return Calibration(disk.name, disk.size, reads, writes, now, quick), bound(figures)


KEPT: Final = "what is known of it stays as it was"


def _gone(disk: Disk, before: int | None) -> str:
    from j10ce.host.disks import identity

    return "" if identity(disk.number) == before else ", since it went away"


def _show(disk: Disk, c: Calibration, output: str) -> None:
    if output in ("json", "yaml"):
        say(dump(_plain(disk, c), output))
        return
    rows = [
        [name, spell("diskRead", s.bps), s.seq_iops, s.iops, f"{s.slow_us / 1000:.1f}ms"] if s.bps else [name]
        for name, s in (("reads", c.read), ("writes", c.write))
    ]
    headings = ["OF " + disk.name.upper(), "BYTES/S", "IN SEQUENCE/S", "ANYWHERE/S", "SLOWEST 5 %"]
    say(table(headings, [[*row, *[None] * (len(headings) - len(row))] for row in rows]))
    if not c.write.bps:
        say(f"what it writes was not measured, for want of a file system; {_said(disk)}")
    elif known(disk, c).model:
        say(f"io.cost: {model(c)}; {qos(c)}")


def _said(disk: Disk) -> str:
    return f"for floors say io.disks.{disk.name}.writeBps in a NodeStrategy"


def _plain(disk: Disk, c: Calibration) -> dict[str, Any]:
    def of(speed: Any) -> dict[str, int] | None:
        if not speed.bps:
            return None
        return {"bps": speed.bps, "seqIops": speed.seq_iops, "iops": speed.iops, "slowUs": speed.slow_us}

    divided = bool(known(disk, c).model)
    cost = {"model": model(c), "qos": qos(c)} if divided else None
    plain = {"disk": disk.name, "number": disk.number, "serial": disk.lasting, "sizeBytes": disk.size}
    return {**plain, "quick": c.quick, "reads": of(c.read), "writes": of(c.write), "ioCost": cost}
