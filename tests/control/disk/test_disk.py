"""What is said to disks and of them: nothing where nobody asks, else what follows from what is known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.control.disk.disk import DiskUse
from j10ce.control.disk.weights import weights
from j10ce.model.kinds import IoSection
from j10ce.model.knob import Support, TargetId, group
from j10ce.model.machine.disk import Disk
from j10ce.model.plan import Bound
from j10ce.model.quantity import Duration
from j10ce.model.resource import Resources
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Ceiling, Entitlement
from j10ce.testing import build
from j10ce.testing.conformance_disks import MODEL_TEXT, QOS_TEXT

MB = 1_000_000
SDA = Disk("8:0", name="sda", managed=True, queued=True, read_bps=200 * MB, write_bps=100 * MB)
KNOWN = replace(SDA, model=MODEL_TEXT, qos=QOS_TEXT)
IO = ("io.weight", "io.latency", "io.max.rbps", "io.max.wbps", "io.max.riops", "io.max.wiops")
COST = ("io.cost.model", "io.cost.qos")
FLOOR = Resources(disk_read=50 * MB)


def entitled(name: str, tier: str = "standard", **fields: Any) -> Entitlement:
    return replace(build.entitlement(build.workload(name), tier=tier, profile="gold"), **fields)


def machine(
    *entitlements: Entitlement,
    disks: Iterable[Disk] = (SDA,),
    lacking: Iterable[str] = COST,
    readings: Mapping[tuple[TargetId, str], float] | None = None,
    now: float = 1000.0,
) -> Snapshot:
    workloads = [build.workload(e.target.rpartition("/")[2]) for e in entitlements]
    node = build.node(disks={d.number: d for d in disks})
    return build.snapshot(
        *entitlements, workloads=workloads, on=node, lacking=lacking, readings=readings or {}, now=now
    )


def said(snap: Snapshot, controller: DiskUse | None = None) -> dict[str, Any]:
    proposals = (controller or DiskUse(DiskUse.Config())).propose(snap)
    return {str(p.setting): p.value for p in proposals if p.bound is Bound.WANT}


API, SYNC = entitled("api", floor=FLOOR), entitled("sync", tier="besteffort")
CONTENDED = {
    (API.target, "disk.read[8:0]"): 20.0 * MB,
    (SYNC.target, "disk.read[8:0]"): 0.0,
    (SYNC.target, "disk.write[8:0]"): 95.0 * MB,
    (SYNC.target, "memory.working_set"): 10.0 * MB,
}


@pytest.mark.parametrize(
    "one", [entitled("api"), SYNC, replace(API, chosen=False)], ids=["plain", "tier", "not chosen"]
)
def test_where_nobody_asks_disks_stay_as_they_are(one: Entitlement) -> None:
    assert said(machine(one, readings=CONTENDED)) == {}


def test_limits_of_a_workload_are_caps_on_every_disk_that_holds_files() -> None:
    volume = Disk("253:0", name="dm-0", managed=True, below=("8:0",))
    limited = entitled("sync", ceiling=Ceiling(disk_read=50e6), io=IoSection(write_iops_limit=200))
    assert said(machine(limited, disks=(SDA, volume, Disk("8:32", name="usb")))) == {
        "workload/default/sync io.max[253:0].rbps": 50e6,
        "workload/default/sync io.max[253:0].wiops": 200.0,
    }


def test_weight_and_latency_are_said_where_requests_queue() -> None:
    io = IoSection(weight=500, latency=Duration(0.005))
    assert said(machine(entitled("api", io=io))) == {
        "workload/default/api io.weight": 500.0,
        "workload/default/api io.latency[8:0]": 5000.0,
    }
    assert said(machine(entitled("api", io=io), lacking=IO)) == {}


def test_a_floor_caps_the_others_while_its_holder_works() -> None:
    wishes = said(machine(API, SYNC, readings=CONTENDED))
    limited = {name for name, value in wishes.items() if value != math.inf}
    assert limited == {f"{SYNC.target} io.max[8:0].{what}" for what in ("rbps", "wbps")}
    assert wishes[f"{SYNC.target} io.max[8:0].wbps"] < 80 * MB


@pytest.mark.parametrize(("via", "counted"), [("cgroup2", {API.target, SYNC.target}), ("cgroup1", set())])
def test_whoever_is_to_be_counted_has_a_limit_that_is_none_where_the_kernel_counts_no_others(
    via: str, counted: set[str]
) -> None:
    """On cgroup v2 a group has no counters of disks until a value brings the controller down to it."""
    snap = machine(API, SYNC)
    snap = replace(snap, support={**snap.support, "io.max.riops": Support(True, via)})
    proposals = [p for p in DiskUse(DiskUse.Config()).propose(snap) if p.setting.knob == "io.max.riops"]
    assert {p.setting.target for p in proposals} == counted
    assert {p.value for p in proposals} <= {math.inf}


def test_a_floor_on_a_disk_that_nobody_measured_caps_nobody() -> None:
    assert said(machine(API, SYNC, disks=(Disk("8:0", name="sda", managed=True),), readings=CONTENDED)) == {}


def test_pages_that_best_effort_has_written_are_bounded_before_a_writer_with_a_floor() -> None:
    writer = entitled("db", floor=Resources(disk_write=50 * MB))
    readings = {**CONTENDED, (writer.target, "disk.read[8:0]"): 0.0, (writer.target, "disk.write[8:0]"): 30.0 * MB}
    proposals = [*DiskUse(DiskUse.Config()).propose(machine(writer, SYNC, readings=readings))]
    (high,) = [p for p in proposals if p.setting.knob == "memory.high"]
    assert (high.setting.target, high.bound) == (SYNC.target, Bound.AT_MOST)
    assert "what it has written and sda has not yet" in high.reason


def test_a_calibrated_disk_is_divided_by_weight_and_nobody_is_capped() -> None:
    wishes = said(machine(API, SYNC, disks=(KNOWN,), lacking=(), readings=CONTENDED))
    assert wishes["disk/8:0 io.cost.model"] == MODEL_TEXT
    assert wishes["disk/8:0 io.cost.qos"] == QOS_TEXT
    assert not any("io.max" in name for name in wishes)
    assert wishes[f"{API.target} io.weight"] > 100


def test_weights_are_worth_the_floors_on_every_level() -> None:
    """Whoever else is there has 100, and everybody wants all of the disk."""
    other = entitled("web", floor=Resources(disk_read=40 * MB, disk_write=10 * MB))
    snap = machine(API, SYNC, other, entitled("plain"), disks=(KNOWN,), lacking=())
    given = weights(snap)
    for target, promised in ((API.target, 0.25), (other.target, 0.3)):
        part, here = 1.0, target
        while (up := snap.groups.parent(here)) is not None:
            siblings = sum(given.get(c, 100.0) for c in snap.groups.children[up]) + 100 * len(snap.groups[up].foreign)
            part, here = part * given.get(here, 100.0) / siblings, up
        assert part >= promised - 0.01
    assert all(1 <= weight <= 10_000 for weight in given.values())
    assert group("") not in given


def test_a_model_that_is_wrong_is_told_and_left_alone_for_a_while() -> None:
    wrong = {**CONTENDED, (TargetId("disk/8:0"), "io.vrate"): 50.0, (TargetId("disk/8:0"), "disk.busy"): 0.9}
    readings = {key: [value] * 30 if key[0] == "disk/8:0" else value for key, value in wrong.items()}
    controller = DiskUse(DiskUse.Config())
    snap = machine(API, SYNC, disks=(KNOWN,), lacking=(), readings=readings)  # type: ignore[arg-type]
    proposals = [*controller.propose(snap)]
    assert not any(p.setting.knob.startswith("io.cost") for p in proposals)
    assert any("the model promises more than the disk does" in p.reason for p in proposals)
    later = replace(snap, now=snap.now + 601, readings=build.FixedReadings(CONTENDED))
    assert f"{API.target} io.weight" in said(later, controller)


def test_a_floor_below_a_group_that_is_not_ours_is_kept_by_caps() -> None:
    pod = build.workload("api", handle=build.handle("kubepods/pod1", made=False))
    snap = build.snapshot(
        API,
        SYNC,
        workloads=[pod, build.workload("sync")],
        on=build.node(disks={"8:0": KNOWN}),
        readings=CONTENDED,
    )
    wishes = said(snap)
    assert f"{SYNC.target} io.max[8:0].wbps" in wishes
    assert f"{API.target} io.weight" not in wishes


def test_the_order_of_workloads_changes_nothing() -> None:
    everyone = (API, SYNC, entitled("web", ceiling=Ceiling(disk_write=1e7)))
    answers = [said(machine(*order, readings=CONTENDED)) for order in itertools.permutations(everyone)]
    assert all(answer == answers[0] for answer in answers)
