"""The initial RAM disk: busybox, the modules that lead to the shared root, and the script that goes there."""

from __future__ import annotations

import lzma
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.lab.kernel import Kernel, tool

NEEDED = ("virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_blk")

INIT = r"""#!/bin/busybox sh
B=/bin/busybox
$B mount -t devtmpfs dev /dev
$B mount -t proc proc /proc
$B mount -t sysfs sys /sys
while read -r m; do $B insmod "$m" 2>/dev/null; done < /modules.list
O=trans=virtio,version=9p2000.L,msize=512000
$B mkdir -p /lower /rw /new
$B mount -t 9p -o ro,cache=loose,$O root /lower || { echo "lab: no root file system"; $B poweroff -f; }
$B mount -t tmpfs -o size=60% rw /rw
$B mkdir /rw/upper /rw/work
$B mount -t overlay -o lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work overlay /new
$B mount -t 9p -o cache=none,access=any,$O job /new/mnt
for d in proc sys dev; do $B mount -o move /$d /new/$d; done
exec $B switch_root /new /bin/bash /mnt/boot.sh
"""


class Entry(NamedTuple):
    name: str
    mode: int
    data: bytes = b""


def initrd(kernel: Kernel) -> bytes:
    return archive(entries(kernel))


def entries(kernel: Kernel) -> Iterator[Entry]:
    for directory in ("bin", "dev", "proc", "sys", "modules"):
        yield Entry(directory, stat.S_IFDIR | 0o755)
    yield Entry("bin/busybox", stat.S_IFREG | 0o755, Path(tool("busybox")).read_bytes())
    yield Entry("init", stat.S_IFREG | 0o755, INIT.encode())
    names = []
    for path in load_order(kernel.modules):
        raw = path.read_bytes()
        names.append(f"modules/{path.name.removesuffix('.xz')}")
        yield Entry(names[-1], stat.S_IFREG | 0o644, lzma.decompress(raw) if path.suffix == ".xz" else raw)
    yield Entry("modules.list", stat.S_IFREG | 0o644, "".join(f"/{name}\n" for name in names).encode())


def load_order(modules: Path) -> list[Path]:
    """`NEEDED`, each behind what it depends on; what is built into the kernel is not in modules.dep."""
    needs: dict[str, list[str]] = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        needs[Path(path).name.split(".ko")[0].replace("-", "_")] = [*reversed(rest.split()), path]
    ordered = (path for name in NEEDED for path in needs.get(name, ()))
    return [modules / path for path in dict.fromkeys(ordered)]


def archive(files: Iterable[Entry]) -> bytes:
    """A cpio archive in the "newc" format: header of 13 hex fields, name, data, each padded to 4 bytes."""
    out = bytearray()
    for inode, entry in enumerate([*files, Entry("TRAILER!!!", 0)], start=1):
        name = entry.name.encode() + b"\0"
        fields = (inode, entry.mode, 0, 0, 1, 0, len(entry.data), 0, 0, 0, 0, len(name), 0)
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        out += b"\0" * (-len(out) % 4)
        out += entry.data
        out += b"\0" * (-len(out) % 4)
    return bytes(out)
