"""Commands that outlived the agent that managed them: they run on in cgroups of ours, and nobody looks after them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from j10ce.errors import Unsupported
from j10ce.host.mounts import Hierarchies
from j10ce.model.workload import APART


class LeftOver(NamedTuple):
    name: str  # as it was called, in the namespace default; empty where the cgroup does not tell
    pid: int

    def __str__(self) -> str:
        named = f" --name {self.name}" if self.name else ""
        return f"process {self.pid} runs on without QoS; `j10ce-qos adopt --pid {self.pid}{named}` manages it again"


def left_over(top: str, managed: Collection[str], agent: int) -> list[LeftOver]:
    """`managed`: cgroups of workloads that are looked after; `agent`: the process whose own cgroup is no workload.

    Of a user who may not write there, none is one's own: they may be root's, and looked after."""
    try:
        mount = next(iter(Hierarchies.discover().in_use().values()), None)
    except Unsupported:
        return []
    if mount and not os.access(mount.path, os.W_OK):
        return []
    groups = (top, f"{top}_{APART}", f"{top}.slice")
    return [
        LeftOver(_name(path), pids[0])
        for group in groups
        for path, pids in (_inhabited(Path(mount.path), group) if mount else ())
        if path not in managed and agent not in pids
    ]


def _inhabited(root: Path, group: str) -> Iterator[tuple[str, list[int]]]:
    for folder, _, _ in os.walk(root / group):
        try:
            pids = [int(pid) for pid in Path(folder, "cgroup.procs").read_text().split()]
        except OSError:
            continue  # it went between the listing and the look at it
        if pids:
            yield str(Path(folder).relative_to(root)), pids


def _name(path: str) -> str:
    namespace, _, name = path.rpartition("/")[2].partition("_")
    return name if namespace == "default" else ""
