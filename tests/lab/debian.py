"""Programs that tests run against, out of Debian packages: unpacked under the cache directory, never installed.

`unpacked("etcd-server")` is the machine's own suite; `unpacked("kubectl", suite="sid")` another one of its mirror.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from tests.lab.kernel import APT, cache_dir, locked

SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PROGRAMS = (  # name, package, suite, file
    ("etcd", "etcd-server", "", "usr/bin/etcd"),
    ("etcdctl", "etcd-client", "", "usr/bin/etcdctl"),
    ("kubectl-old", "kubernetes-client", "", "usr/bin/kubectl"),
    ("kubectl", "kubectl", "sid", "usr/bin/kubectl"),
    ("containerd", "containerd", "sid", "usr/bin/containerd"),
    ("runc", "runc", "", "usr/sbin/runc"),
    ("busybox", "busybox-static", "", "bin/busybox"),
)


def program(name: str) -> Path:
    """The executable called `name`; `J10CE_LAB_KUBECTL_OLD=/path` and the like name another one."""
    if explicit := os.environ.get(f"J10CE_LAB_{name.upper().replace('-', '_')}"):
        return Path(explicit)
    _, package, suite, file = next(row for row in PROGRAMS if row[0] == name)
    return unpacked(package, suite=suite) / file


def unpacked(*packages: str, suite: str = "") -> Path:
    """The root of unpacked packages, one over the other; fetched first where they are not cached."""
    home = cache_dir() / (f"{packages[0]}-{suite}" if suite else packages[0])
    with locked(cache_dir()):
        if not home.exists():
            fetch(packages, suite, home)
    return home


def fetch(packages: tuple[str, ...], suite: str, home: Path) -> None:
    """Download and unpack beside `home`, then rename: a broken download leaves nothing behind."""
    print(f"lab: fetching {' '.join(packages)} into {home}", flush=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        apt = [*APT, *elsewhere(suite, Path(scratch, "apt"))] if suite else [*APT]
        debs, tree = Path(scratch, "debs"), Path(scratch, "tree")
        debs.mkdir()
        if suite or subprocess.run([*apt, "download", *packages], cwd=debs, check=False).returncode:
            subprocess.run([*apt, "update"], check=True)
            subprocess.run([*apt, "download", *packages], cwd=debs, check=True)
        for deb in debs.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", deb, tree], check=True)
        tree.rename(home)


def elsewhere(suite: str, folder: Path, *, sources: bool = False) -> list[str]:
    """Options that make apt read another suite of this machine's mirror, and keep its books in `folder`."""
    for needed in ("state/lists/partial", "cache/archives/partial"):
        (folder / needed).mkdir(parents=True)
    (folder / "state/status").touch()
    (folder / "list").write_text(f"{'deb-src' if sources else 'deb'} [signed-by={KEYRING}] {mirror()} {suite} main\n")
    settings = {
        "Dir::Etc::sourcelist": folder / "list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "state/status",
        "Dir::Cache": folder / "cache",
    }
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


def mirror() -> str:
    """Where this machine gets its packages from."""
    for line in SOURCES.read_text().splitlines() if SOURCES.exists() else ():
        if line.startswith("URIs:"):
            return line.split()[1]
    raise SystemExit(
        f"lab: {SOURCES} names no mirror, so no other suite can be read; set J10CE_LAB_KUBECTL to a kubectl"
    )
