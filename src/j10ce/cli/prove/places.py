"""Where a disk is measured: in a file without a name on a file system of it, or, where there is none, by reading it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from errno import EINVAL, EOPNOTSUPP, EROFS
from typing import Final

from j10ce.cli.prove.direct_io import BLOCK, LONG, OpenDisk, device, scratch
from j10ce.errors import Denied, NotFound, QosError, Unsupported
from j10ce.host.disks import whole_disk
from j10ce.model.machine.disk import Disk
from j10ce.model.resource import spell

LEAST: Final = 16 * LONG
PART: Final = 2  # of what is free, one part is taken at most
_ODD: Final = frozenset({EINVAL, EOPNOTSUPP, EROFS})


def disk_of(path: str, disks: Mapping[str, Disk]) -> Disk:
    """The whole disk of a device or of a partition; raises NotFound for what is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise NotFound(f"{path}: there is no such device; {_there(disks)}") from None
    except ValueError:
        raise NotFound(f"{path!r} is no path; {_there(disks)}") from None
    if not stat.S_ISBLK(status.st_mode):
        raise NotFound(f"{path} is no block device; {_there(disks)}")
    number = whole_disk(f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}")
    if number not in disks:
        raise NotFound(f"{path} holds nothing that could be measured; {_there(disks)}")
    return disks[number]


def room(disk: Disk, disks: Mapping[str, Disk]) -> tuple[str, int] | None:
    """The folder with most room on a file system of it, and how much; None: there is no such file system."""
    mounts = [m for d in _carried(disk, disks) for m in d.holds if os.path.isdir(m) and os.access(m, os.W_OK)]
    return max(((m, _free(m)) for m in mounts), key=lambda pair: pair[1], default=None)


@contextmanager
def place(disk: Disk, disks: Mapping[str, Disk], most: int) -> Iterator[tuple[OpenDisk, int]]:
    """What is open for it, and how many bytes are to be written first. Errors of opening are said in words."""
    largest = room(disk, disks)
    with ExitStack() as kept:
        if largest is None:
            yield kept.enter_context(_read_only(disk)), 0
            return
        folder, free = largest
        if free // PART < LEAST:
            need = spell("memory", LEAST * PART)
            raise QosError(f"{folder} on {disk.name} has {spell('memory', free)} free; calibrating takes {need}")
        yield kept.enter_context(_in_file(folder, disk)), min(most, free // PART // LONG * LONG)


@contextmanager
def _in_file(folder: str, disk: Disk) -> Iterator[OpenDisk]:
    with ExitStack() as kept:
        try:
            opened = kept.enter_context(scratch(folder))
        except OSError as e:
            if e.errno in _ODD:
                need = "a file system with direct I/O and O_TMPFILE, such as ext4, xfs or btrfs"
                raise Unsupported(f"calibrating {disk.name} in {folder} ({e.strerror})", needs=need) from None
            raise
        yield opened


@contextmanager
def _read_only(disk: Disk) -> Iterator[OpenDisk]:
    path = f"/dev/{disk.name.replace('!', '/')}"
    with ExitStack() as kept:
        try:
            opened = kept.enter_context(device(path))
        except PermissionError:
            raise Denied(f"{path}: this user may not read it; use sudo") from None
        if opened.size < LEAST:
            size, need = spell("memory", opened.size), spell("memory", LEAST)
            raise QosError(f"{path} is too small to be measured: {size}; it takes {need}")
        yield opened._replace(size=opened.size // BLOCK * BLOCK)


def _carried(disk: Disk, disks: Mapping[str, Disk], depth: int = 8) -> Iterator[Disk]:
    """Itself, and what is made of it alone: what is made of several says nothing of one."""
    yield disk
    for other in disks.values() if depth else ():
        if other.below == (disk.number,):
            yield from _carried(other, disks, depth - 1)


def _free(folder: str) -> int:
    try:
        numbers = os.statvfs(folder)
    except OSError:
        return 0
    return 0 if numbers.f_flag & os.ST_RDONLY else numbers.f_bavail * numbers.f_frsize


def _there(disks: Mapping[str, Disk]) -> str:
    names = sorted(f"/dev/{d.name}" for d in disks.values())
    return f"disks here: {', '.join(names[:8])}" if names else "no disks are here"
