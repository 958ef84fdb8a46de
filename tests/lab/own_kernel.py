"""A kernel with core scheduling, which Debian's leave out: built once, of Debian's own source, and kept in the cache.

It takes some minutes of both CPUs. A build that was interrupted goes on where it was.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.lab.debian import unpacked
from tests.lab.kernel import Kernel, cache_dir, locked

SOURCE = "linux-source-6.1"
CONFIG = Path(__file__).with_suffix(".config")
TOOLS = ("flex", "bison", "m4", "libelf-dev", "libelf1")  # what Debian's compiler needs besides
VERSION = "core"


def kernel() -> Kernel:
    home = cache_dir() / f"core-{hashlib.sha256(CONFIG.read_bytes()).hexdigest()[:12]}"
    with locked(cache_dir() / "core-build"):
        if not home.exists():
            build(unpacked(SOURCE), unpacked(*TOOLS), home)
    return Kernel(VERSION, home / "vmlinux", home / "modules")


def build(source: Path, tools: Path, home: Path) -> None:
    tree = home.with_suffix(".tree")
    print(f"lab: building a kernel with core scheduling in {tree}, some minutes", flush=True)
    if not tree.exists():
        unpack(source / f"usr/src/{SOURCE}.tar.xz", tree)
    env = environment(tools)
    make = ["nice", "make", "-s", "-C", str(tree), f"-j{os.cpu_count()}"]
    if not (tree / ".config").exists():
        subprocess.run([*make, "allnoconfig", f"KCONFIG_ALLCONFIG={CONFIG}"], env=env, check=True)
    subprocess.run([*make, "vmlinux"], env=env, check=True)
    ready = tree / "ready"
    (ready / "modules").mkdir(parents=True, exist_ok=True)
    (ready / "modules/modules.dep").write_text("")  # all that the guest needs is built in
    subprocess.run(["strip", "-o", str(ready / "vmlinux"), str(tree / "vmlinux")], check=True)
    ready.rename(home)
    shutil.rmtree(tree)


def unpack(archive: Path, tree: Path) -> None:
    scratch = tree.with_suffix(".unpacking")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", scratch, "--strip-components=1"], check=True)
    scratch.rename(tree)


def environment(tools: Path) -> dict[str, str]:
    """Tools that are unpacked, not installed, look for their data where they were to be installed."""
    libraries = tools / "usr/lib/x86_64-linux-gnu"
    return {
        **os.environ,
        "PATH": f"{tools / 'usr/bin'}:{os.environ['PATH']}",
        "BISON_PKGDATADIR": str(tools / "usr/share/bison"),
        "M4": str(tools / "usr/bin/m4"),
        "C_INCLUDE_PATH": str(tools / "usr/include"),
        "LIBRARY_PATH": str(libraries),
        "LD_LIBRARY_PATH": str(libraries),
        "KBUILD_BUILD_TIMESTAMP": "2024-01-01",
    }


if __name__ == "__main__":
    print(kernel().image)
