"""`oom-order`: who goes first when memory runs out is one number of every process."""

from __future__ import annotations

import pytest

from j10ce.control.memory.oom import OomOrder
from j10ce.model.kinds import MemorySection
from j10ce.model.knob import Setting
from j10ce.model.snapshot import Snapshot
from j10ce.plan.arbiter import arbitrate
from j10ce.testing import build


def snapshot(priority: int | None, *, chosen: bool = True, lacking: tuple[str, ...] = ()) -> Snapshot:
    w = build.workload("web")
    memory = MemorySection() if priority is None else MemorySection(oom_priority=priority)
    return build.snapshot(build.entitlement(w, memory=memory, chosen=chosen), workloads=[w], lacking=lacking)


@pytest.mark.parametrize(
    ("snap", "scores"),
    [
        pytest.param(snapshot(-500), [500.0], id="goes before others"),
        pytest.param(snapshot(1000), [-1000.0], id="never goes"),
        pytest.param(snapshot(0), [], id="0 leaves processes as they are"),
        pytest.param(snapshot(None), [], id="silent"),
        pytest.param(snapshot(-500, chosen=False), [], id="only classified"),
        pytest.param(snapshot(-500, lacking=("oom.score_adj",)), [], id="no /proc"),
    ],
)
def test_the_score_is_the_priority_turned_round(snap: Snapshot, scores: list[float]) -> None:
    proposals = list(OomOrder(OomOrder.Config()).propose(snap))
    assert [p.value for p in proposals] == scores
    assert all("oomPriority" in p.reason for p in proposals)


def test_the_arbiter_takes_it_for_the_workload() -> None:
    snap = snapshot(-500)
    plan = arbitrate(OomOrder(OomOrder.Config()).propose(snap), snap, (), lambda _, value: value)
    (target,) = snap.workloads
    assert plan.verdicts[Setting(target, "oom.score_adj")].value == 500.0
