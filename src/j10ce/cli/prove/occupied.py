"""Who would be disturbed by a run that takes all CPUs for minutes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from j10ce.bench import machine
from j10ce.cli.peers import Peers
from j10ce.errors import QosError, Unsupported
from j10ce.host.mounts import Hierarchies

LOOK_S: Final = 1.0
BUSY: Final = 0.20  # of the machine
KUBEPODS: Final = ("kubepods", "kubepods.slice")


def disturbed(peers: Peers) -> list[str]:
    """One reason each; empty on a machine that is quiet and manages nothing."""
    return [reason for reason in (_work(), _workloads(peers), _pods()) if reason]


def _work() -> str:
    before = machine.spent()
    time.sleep(LOOK_S)
    after = machine.spent()
    busy = (after.busy - before.busy) / max(sum(after) - sum(before), 0.01)
    return f"this machine is {busy:.0%} busy with other work" if busy > BUSY else ""


def _workloads(peers: Peers) -> str:
    try:
        usage = peers.agent(timeout=5.0).get("/v1/top")
    except QosError:
        return ""
    count = len(usage["workloads"])
    return f"j10ce-qos manages {count} workload{'s' * (count != 1)} here" if count else ""


def _pods() -> str:
    try:
        mounts = {mount.path for mount in Hierarchies.discover().in_use().values()}
    except Unsupported:
        return ""
    return "a kubelet runs pods here" if any(Path(m, name).is_dir() for m in mounts for name in KUBEPODS) else ""
