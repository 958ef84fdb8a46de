"""What people are shown of disks: each of the machine, and what one workload has there and from whom."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from j10ce.control.disk import shown
from j10ce.model.knob import Setting, TargetId, disk
from j10ce.model.machine.disk import Disk
from j10ce.model.resource import Resources
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Ceiling
from j10ce.testing import build

MB = 1 << 20
SDA = Disk("8:0", name="sda", managed=True, queued=True, read_bps=200 * MB, write_bps=100 * MB)
API, SYNC = build.workload("api"), build.workload("sync")
USES = {"disk.read": 20.0 * MB, "disk.write": 1.0 * MB, "disk.riops": 300.0, "disk.wiops": 7.0}


def machine(*, cap: float | None = None, sda: Disk = SDA, divided: bool = False, own: float | None = None) -> Snapshot:
    api = replace(build.entitlement(API), floor=Resources(disk_read=50 * MB))
    sync = build.entitlement(SYNC)
    if own is not None:
        sync = replace(sync, ceiling=Ceiling(disk_write=own))
    values: dict[Setting, Any] = {Setting(SYNC.target, "io.max.wbps", "8:0"): cap} if cap is not None else {}
    snap = build.snapshot(
        api,
        sync,
        workloads=[API, SYNC],
        on=build.node(disks={"8:0": sda}),
        readings={(API.target, f"{metric}[8:0]"): value for metric, value in USES.items()}
        | {(disk("8:0"), metric): value for metric, value in USES.items()}
        | {(disk("8:0"), "disk.busy"): 0.5},
    )
    cost = {Setting(disk("8:0"), "io.cost.qos"): "enable=1"} if divided else {}
    return replace(snap, settings={**snap.settings, **values, **cost})


def noted(snap: Snapshot, target: TargetId = API.target, name: str = "io.max[8:0]") -> list[str]:
    return list(shown.notes_of(snap, target, name))


def test_who_has_a_floor_sees_what_it_uses_how_it_is_kept_and_who_gives_way() -> None:
    assert noted(machine(cap=30.0 * MB)) == [
        "sda: reads 20Mi/s in 300, writes 1Mi/s in 7; at least 50Mi/s read, by caps on others; "
        "gives way: default/sync (30Mi)"
    ]


def test_a_limit_of_ones_own_gives_way_to_nobody() -> None:
    assert noted(machine(cap=30.0 * MB, own=30.0 * MB))[0].endswith("; nobody has to give way")


def test_where_io_cost_divides_it_is_by_weight() -> None:
    assert "at least 50Mi/s read, by weight" in noted(machine(divided=True))[0]


def test_a_disk_that_nobody_measured_keeps_no_floor() -> None:
    unknown = replace(SDA, read_bps=0, write_bps=0)
    assert "which nothing keeps: not measured" in noted(machine(sda=unknown))[0]


def test_who_has_no_floor_sees_what_is_seen_of_it() -> None:
    assert noted(machine(), SYNC.target) == ["sda: nothing was seen of it"]


def test_nothing_is_said_beside_other_knobs_or_of_other_disks() -> None:
    assert noted(machine(), name="cpu.weight") == noted(machine(), name="io.max[8:16]") == []


def test_every_managed_disk_is_listed_with_what_it_does_and_can() -> None:
    row = {"name": "sda", "read": 20.0 * MB, "write": 1.0 * MB, "busy": 0.5}
    assert shown.rows(machine()) == [row | {"readCapacity": 200 * MB, "writeCapacity": 100 * MB}]
    assert shown.rows(machine(sda=replace(SDA, managed=False))) == []
