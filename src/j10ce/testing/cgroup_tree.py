"""A cgroup tree on disk, written as a literal. No kernel behind it: files hold what was written last.

tree = cgroup_tree(tmp_path, {"kubepods": {"pod1": {"memory.current": "1024"}}})             # cgroup v2
tree = cgroup_tree(tmp_path, {"web": fresh(1)}, v1=("cpu", "cpuacct", "cpuset", "memory"))  # cgroup v1
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, Literal

from j10ce.host.mounts import BLKIO, IN_USE, IO, Hierarchies
from j10ce.model.knob import FREEZER

Literals = Mapping[str, "str | Literals"]

_FRESH: Final[Mapping[int, Mapping[str, str]]] = {
    1: {
        "cpu.shares": "1024",
        "cpu.idle": "0",
        "cpu.cfs_quota_us": "-1",
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_burst_us": "0",
        "cpuset.cpus": "0-3",
        "cpuset.mems": "0",
        "memory.limit_in_bytes": "9223372036854771712",
        "memory.memsw.limit_in_bytes": "9223372036854771712",
        "memory.usage_in_bytes": "0",
        "cpuacct.usage": "0",
        "freezer.state": "THAWED",
        "blkio.bfq.weight": "100",
        "blkio.throttle.read_bps_device": "",
        "blkio.throttle.write_bps_device": "",
        "blkio.throttle.read_iops_device": "",
        "blkio.throttle.write_iops_device": "",
        "cgroup.procs": "",
    },
    2: {
        "cpu.weight": "100",
        "cpu.idle": "0",
        "cpu.max": "max 100000",
        "cpu.max.burst": "0",
        "cpuset.cpus": "",
        "memory.min": "0",
        "memory.low": "0",
        "memory.high": "max",
        "memory.max": "max",
        "memory.oom.group": "0",
        "memory.current": "0",
        "cgroup.freeze": "0",
        "io.weight": "default 100",
        "io.max": "",
        "io.latency": "",
        "cgroup.procs": "",
        "cgroup.subtree_control": "",
    },
}


def fresh(version: Literal[1, 2], **files: str) -> Mapping[str, str]:
    """The files of a new cgroup; `fresh(2, cpu__weight="50")` changes one."""
    return {**_FRESH[version], **{name.replace("__", "."): text for name, text in files.items()}}


def cgroup_tree(root: Path, tree: Literals, *, v1: Collection[str] = (), unified: bool | None = None) -> Hierarchies:
    """Hierarchies below `root`: the controllers of `v1` each in one of their own, the others together in cgroup2.

    `unified` adds a cgroup2 mount, or leaves it out; it is there unless every controller is on v1.
    """
    rest = [c for c in IN_USE if c not in v1 and c not in ("cpuacct", FREEZER, IO)]
    mounts = {c: root / c for c in v1}
    lines = [f"1 1 0:1 / {path} rw - cgroup cgroup rw,{BLKIO if c == IO else c}" for c, path in mounts.items()]
    if bool(rest) if unified is None else unified:
        mounts["unified"] = root / "unified"
        lines.append(f"1 1 0:2 / {mounts['unified']} rw - cgroup2 cgroup2 rw,nsdelegate")
    for name, mount in mounts.items():
        mount.mkdir(parents=True)
        _fill(mount, tree, None if name == "unified" else name)
    if "unified" in mounts:
        (mounts["unified"] / "cgroup.controllers").write_text(" ".join([*rest, *([] if IO in v1 else [IO])]) + "\n")
    return Hierarchies.discover("\n".join(lines) + "\n")


def _fill(directory: Path, tree: Literals, controller: str | None) -> None:
    for name, content in tree.items():
        here = directory / name
        if not isinstance(content, str):
            here.mkdir()
            _fill(here, content, controller)
        elif controller is None or name.split(".")[0] in (BLKIO if controller == IO else controller, "cgroup"):
            here.write_text("" if name == "cgroup.procs" and not content else f"{content}\n")
