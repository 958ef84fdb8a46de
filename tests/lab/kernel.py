"""A stock Debian kernel, unpacked (never installed) under the cache directory."""

from __future__ import annotations

import contextlib
import fcntl
import lzma
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = os.environ.get("J10CE_LAB_PACKAGE", "linux-image-amd64")
APT = ("apt-get", "-qq", "-o", "APT::Sandbox::User=root")  # the cache is not readable for its own user
XZ_MAGIC = b"\xfd7zXZ\0"


class Kernel(NamedTuple):
    version: str
    image: Path
    modules: Path


def cache_dir() -> Path:
    """`J10CE_LAB_CACHE` moves it; `none` says that there is to be no lab, and finds out who needs one."""
    if (explicit := os.environ.get("J10CE_LAB_CACHE")) == "none":
        raise LookupError("J10CE_LAB_CACHE=none, and this needs the lab: a test that does is marked `lab`")
    if explicit:
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "j10ce-qos" / "lab"


def kernel() -> Kernel:
    """The cached kernel of `PACKAGE`; fetched first where there is none."""
    home = cache_dir() / PACKAGE
    with locked(cache_dir()):
        if not home.exists():
            fetch(home)
    return find(home)


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch(home: Path) -> None:
    """Download and unpack beside `home`, then rename: a broken download leaves nothing behind."""
    print(f"lab: fetching {PACKAGE} into {home}", flush=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        debs, tree = Path(scratch, "debs"), Path(scratch, "tree")
        debs.mkdir()
        download(debs)
        for deb in debs.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", deb, tree], check=True)
        ready = find(tree)
        subprocess.run([tool("depmod"), "-b", ready.modules.parents[2], ready.version], check=True)
        unpack_image(ready.image, tree / "vmlinux")
        tree.rename(home)


def download(into: Path) -> None:
    if subprocess.run([*APT, "download", *packages()], cwd=into, check=False).returncode == 0:
        return
    subprocess.run([*APT, "update"], check=True)
    subprocess.run([*APT, "download", *packages()], cwd=into, check=True)


def packages() -> list[str]:
    """What the meta package stands for: the image, and the modules where they are a package of their own."""
    listing = subprocess.run(["apt-cache", "depends", PACKAGE], capture_output=True, text=True, check=False).stdout
    names = [line.split()[-1] for line in listing.splitlines() if "Depends: linux-" in line]
    return names or [PACKAGE]


def find(tree: Path) -> Kernel:
    for base in (tree / "lib/modules", tree / "usr/lib/modules"):
        for modules in sorted(base.glob("*"), reverse=True):
            for image in (tree / "vmlinux", tree / f"boot/vmlinuz-{modules.name}", modules / "vmlinuz"):
                if image.exists():
                    return Kernel(modules.name, image, modules)
    raise SystemExit(f"lab: no kernel under {tree}; remove that directory to fetch it again")


def unpack_image(bzimage: Path, to: Path) -> None:
    """Take the ELF kernel out of an xz image: QEMU boots it directly, without 3 s of emulated decompression."""
    raw = bzimage.read_bytes()
    setup_sectors = raw[0x1F1] or 4
    offset, length = struct.unpack_from("<II", raw, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = raw[start : start + length]
    if payload.startswith(XZ_MAGIC):
        to.write_bytes(lzma.LZMADecompressor().decompress(payload))


def tool(name: str) -> str:
    """Root's tools are not on every user's PATH."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise SystemExit(f"lab: {name} is missing on this machine: make setup-lab")
    return path
