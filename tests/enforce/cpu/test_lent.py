"""Batch amounts of a pod in the files of a real kernel, as the guide shows them."""

from __future__ import annotations

from msgspec.structs import replace

from j10ce.control.lent import Lent
from j10ce.model.knob import TargetId, part
from j10ce.model.plan import ValueChange
from j10ce.model.quantity import Bytes, Millicores
from j10ce.model.resource import Resources
from j10ce.model.snapshot import Group, Snapshot
from j10ce.model.workload import Ceiling, Handle, Part, Reclaimable
from j10ce.plan.arbiter import arbitrate
from j10ce.testing import build
from tests.enforce.workbench import Workbench

MIB = 1 << 20
BATCH = Reclaimable(Resources(Millicores(1500), Bytes(64 * MIB)), Ceiling(2000, 128 * MIB))
POD, MAIN = TargetId("workload/default/p"), part("default", "p", "main")


def test_a_pod_and_its_container_have_their_batch_amounts(work: Workbench) -> None:
    pod, main = work.make("pods", "p"), work.make("pods", "p", "main")
    places = {POD: pod, MAIN: main}
    snap = on_paper(work, places)
    plan = arbitrate(Lent(Lent.Config()).propose(snap), snap, (), lambda _, value: value)
    for change in (c for c in plan.changes if isinstance(c, ValueChange)):
        work.set(places[change.setting.target], change.setting.knob, change.new)
    for at in (pod, main):
        assert read(work, at, "cpu.max") == 200_000
        assert read(work, at, "memory.max") == 128 * MIB
    assert read(work, main, "cpu.weight") in (1536, 1567), "1024 a CPU, as finely as the kernel holds it"
    if work.hierarchies.version("cpu") == 1:
        assert work.path(main, "cpu.shares").read_text().strip() == "1536"
        assert work.path(pod, "cpu.cfs_quota_us").read_text().strip() == "200000"
        assert work.path(pod, "memory.limit_in_bytes").read_text().strip() == str(128 * MIB)


def read(work: Workbench, at: Handle, knob: str) -> object:
    return work.backend.read(work.setting(at, knob), at)


def on_paper(work: Workbench, places: dict[TargetId, Handle]) -> Snapshot:
    """The snapshot of a pod that is there, as a kubelet made it: it knows nothing of batch amounts."""
    pod, main = (replace(places[t], made=False) for t in (POD, MAIN))
    container = Part("main", main, reclaimable={"batch": BATCH})
    w = build.workload("p", handle=pod, parts=(container,), reclaimable={"batch": BATCH})
    e = build.entitlement(w, tier="besteffort")
    groups = build.tree([w], {w.target: e}, groups=[Group(MAIN, POD, main.path, owned=False)])
    support = {knob: one for knob, one in work.backend.knobs().items() if one.ok}
    return replace(build.snapshot(e, workloads=[w], groups=groups), support=support)
