"""Which disks this machine has, what each is made of, and which file systems are on it. Reads only.

A cgroup's use of a disk is counted and limited at whole disks, never at partitions. What is made of others (dm, md)
takes caps, since each I/O passes it; weights and io.cost work where there is a queue of requests, below it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from j10ce.host.files import read_whole
from j10ce.host.mounts import unescape
from j10ce.model.machine.disk import Disk, parse_number

SYS: Final = "/sys"
MOUNTINFO: Final = "/proc/self/mountinfo"
# File systems whose write-back is charged to whoever wrote, with cgroup v2; for others it is nobody's.
CHARGED: Final = frozenset({"bcachefs", "btrfs", "ext2", "ext4", "f2fs", "xfs"})
_IN_MEMORY: Final = ("ram", "zram")
_READ_BY_MOTION: Final = ("sr", "fd")  # CD and floppy drives
MOST_MOUNTS: Final = 16  # named of one disk
_SECTOR: Final = 512


class FileSystem(NamedTuple):
    """One that is mounted, as far as it matters which disk it is on."""

    number: str  # `8:1`; begins with `0:` where it has no disk of its own
    point: str
    kind: str
    source: str
    options: frozenset[str]
    whole: bool  # not a part of it that is also seen elsewhere

    @property
    def charged(self) -> bool:
        return self.kind in CHARGED and "data=journal" not in self.options


def discover(sys: str = SYS, mountinfo: str = MOUNTINFO, *, charged: bool = True) -> Mapping[str, Disk]:
    """By number. `charged`: this machine's cgroups are told of write-back at all, as those of v2 are."""
    bare = {disk.number: disk for disk in _bare(sys)}
    mounted = file_systems((read_whole(mountinfo) or b"").decode(errors="replace"))
    on: dict[str, list[FileSystem]] = {}
    for fs in mounted:
        if number := whole_disk(_number_of(fs, mounted), sys):
            on.setdefault(number, []).append(fs)
    held = {n: _holding(disk, on[n], charged) if n in on else disk for n, disk in bare.items()}
    carriers = {below for disk in held.values() if disk.managed for below in _leaves(disk.number, held)}
    return {n: replace(disk, managed=True) if n in carriers else disk for n, disk in held.items()}


def takes_io(name: str) -> bool:
    """What is in memory takes none, nor is a CD or floppy drive anybody's disk."""
    return not name.startswith((*_IN_MEMORY, *_READ_BY_MOTION))


def whole_disk(number: str, sys: str = SYS) -> str:
    """The disk of a partition, or the number itself; empty where there is no such device."""
    path = os.path.realpath(f"{sys}/dev/block/{number}")
    if number.startswith("0:") or not parse_number(number) or not os.path.isdir(path):
        return ""
    return _line(f"{os.path.dirname(path)}/dev") if os.path.exists(f"{path}/partition") else number


def identity(number: str, sys: str = SYS) -> int | None:
    """Never the same for two disks that had one number since the machine was started; None: there is none."""
    try:
        return os.stat(f"{sys}/dev/block/{number}/").st_ino if parse_number(number) else None
    except OSError:
        return None


def file_systems(mountinfo: str) -> list[FileSystem]:
    """Those that hide nobody else's place: of several at one mount point the last."""
    return list({fs.point: fs for fs in map(_file_system, mountinfo.split("\n")) if fs}.values())


def under(path: str, mounted: Iterable[FileSystem]) -> FileSystem | None:
    """The file system that an absolute path is on."""
    above = (fs for fs in mounted if fs.point == "/" or path == fs.point or path.startswith(f"{fs.point}/"))
    return max(above, key=lambda fs: len(fs.point), default=None)


def _file_system(line: str) -> FileSystem | None:
    before, dash, after = line.partition(" - ")
    fields, (kind, *rest) = before.split(" "), after.split(" ")
    if not dash or len(fields) < 6 or len(rest) < 2 or not parse_number(fields[2]):
        return None
    options = frozenset(f"{fields[5]},{unescape(rest[1])}".split(","))
    return FileSystem(fields[2], unescape(fields[4]), kind, unescape(rest[0]), options, fields[3] == "/")


def _number_of(fs: FileSystem, mounted: Iterable[FileSystem]) -> str:
    """btrfs has no number of a disk but the name of one; what overlay writes is on the file system below.

    Any user may mount by FUSE, and say that it is on a disk.
    """
    if not fs.number.startswith("0:"):
        return fs.number
    if fs.kind == "overlay":
        upper = next((o.removeprefix("upperdir=") for o in fs.options if o.startswith("upperdir=/")), "")
        below = under(upper, (m for m in mounted if m.kind != "overlay")) if upper else None
        return _number_of(below, ()) if below else ""
    if fs.source.startswith("/dev/") and fs.kind.partition(".")[0] != "fuse":
        try:
            device = os.stat(fs.source).st_rdev
        except OSError:
            return ""
        return f"{os.major(device)}:{os.minor(device)}"
    return ""


def _holding(disk: Disk, on: list[FileSystem], charged: bool) -> Disk:
    """The mounts of whole file systems, where there are any: kubelet and containers show the same ones many times."""
    own = [fs for fs in on if fs.kind != "overlay"]
    named = [fs for fs in own if fs.whole] or own[:1] or on[:1]
    distinct = {fs.number: fs for fs in reversed(named)} if len(named) > MOST_MOUNTS else {fs.point: fs for fs in named}
    shown = sorted(distinct.values(), key=lambda fs: fs.point)[:MOST_MOUNTS]
    uncharged = tuple(fs.point for fs in shown if not (charged and fs.charged) and "ro" not in fs.options)
    return replace(disk, holds=tuple(fs.point for fs in shown), uncharged=uncharged, managed=not disk.read_only)


def _leaves(number: str, disks: Mapping[str, Disk], depth: int = 8) -> Iterator[str]:
    """The disks that something is made of, down to those made of nothing."""
    for below in disks[number].below if number in disks and depth else ():
        if below in disks:
            yield below
            yield from _leaves(below, disks, depth - 1)


def _bare(sys: str) -> Iterator[Disk]:
    try:
        names = sorted(os.listdir(f"{sys}/block"))
    except OSError:
        return
    for name in names:
        if takes_io(name) and (disk := _disk(f"{sys}/block/{name}", name, sys)):
            yield disk


def _disk(path: str, name: str, sys: str) -> Disk | None:
    """None where nothing is in it, such as a loop device that nobody uses."""
    number, sectors = _line(f"{path}/dev"), _line(f"{path}/size")
    if not parse_number(number) or not sectors.isdecimal() or int(sectors) == 0:
        return None
    kinds = {"dm": f"{path}/dm", "md": f"{path}/md", "loop": f"{path}/loop"}
    return Disk(
        number,
        name=name,
        serial=_serial(path),
        size=int(sectors) * _SECTOR,
        kind=next((kind for kind, there in kinds.items() if os.path.isdir(there)), ""),
        below=tuple(sorted(_below(path, sys))),
        queued=os.path.isdir(f"{path}/mq"),
        rotational=_line(f"{path}/queue/rotational") == "1",
        scheduler=_chosen(_line(f"{path}/queue/scheduler")),
        read_only=_line(f"{path}/ro") == "1",
    )


def _below(path: str, sys: str) -> Iterator[str]:
    try:
        names = os.listdir(f"{path}/slaves")
    except OSError:
        return
    for name in names:
        if number := whole_disk(_line(f"{path}/slaves/{name}/dev"), sys):
            yield number


def _serial(path: str) -> str:
    """What a calibration is kept by: the number that its maker gave it, or who made it gave what is made of others."""
    names = ("serial", "device/serial", "wwid", "device/wwid", "dm/uuid", "md/uuid", "loop/backing_file")
    read = (_line(f"{path}/{name}") for name in names)
    return next((text[:128] for text in read if text.isprintable() and text), "")


def _chosen(schedulers: str) -> str:
    """`none [mq-deadline] kyber` to `mq-deadline`; a queue without a choice prints one word."""
    words = schedulers.split()
    return next((w[1:-1] for w in words if w.startswith("[")), words[0] if len(words) == 1 else "")


def _line(path: str) -> str:
    try:
        return (read_whole(path) or b"").decode(errors="replace").strip()
    except OSError:  # a disk that is being taken away answers with any error
        return ""
