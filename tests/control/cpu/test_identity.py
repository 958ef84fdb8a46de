"""`cpu-identity`: group identities where the kernel has them, and not a word where it has not."""

from __future__ import annotations

from j10ce.control.cpu.identity import CpuIdentity
from j10ce.model.kinds import CpuSection
from j10ce.model.snapshot import Snapshot
from j10ce.testing import build


def machine(*having: str) -> Snapshot:
    rows = {"job": CpuSection(idle=True), "web": CpuSection(), "trade": CpuSection(latency="realtime")}
    tiers = {"job": "besteffort", "web": "sensitive", "trade": "reserved"}
    workloads = [build.workload(name) for name in rows]
    given = [build.entitlement(w, tier=tiers[w.name], cpu=rows[w.name]) for w in workloads]
    return build.snapshot(*given, workloads=workloads, having=having)


def identities(snap: Snapshot) -> dict[str, object]:
    return {str(p.setting.target): p.value for p in CpuIdentity(CpuIdentity.Config()).propose(snap)}


def test_idle_work_is_last_and_realtime_first() -> None:
    assert identities(machine("cpu.bvt_warp_ns")) == {"group/j10ce_besteffort": -1.0, "group/j10ce/reserved": 2.0}


def test_mainline_kernels_have_no_identities() -> None:
    assert identities(machine()) == {}
