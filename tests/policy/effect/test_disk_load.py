"""Whether a floor of a disk holds: on a measured one, where others can be limited, and where all floors fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.model.machine.disk import Disk
from j10ce.policy.effect.effective import Effective, effective
from j10ce.testing import build

DB, LOG = build.workload("db"), build.workload("log")
SDA = Disk("8:0", "sda", managed=True, read_bps=400, write_bps=200, holds=("/",))


def judged(floors: dict[str, int], *disks: Disk, other: dict[str, int] | None = None, **fields: Any) -> Effective:
    every = [
        replace(build.entitlement(w), floor=build.resources()._replace(**said))
        for w, said in ((DB, floors), (LOG, other or {}))
    ]
    node = build.node(disks={d.number: d for d in disks})
    return effective(build.snapshot(*every, workloads=[DB, LOG], on=node, **fields))[DB.target]


def test_floors_that_fit_hold() -> None:
    both = judged({"disk_read": 200, "disk_write": 40}, SDA)
    assert both.holds
    assert both.rates == {"diskRead": (200.0, ""), "diskWrite": (40.0, "")}


@pytest.mark.parametrize(
    ("disks", "lacking", "reason"),
    [
        pytest.param([], [], "no managed disk is calibrated", id="no disk"),
        pytest.param([replace(SDA, read_bps=0)], [], "no managed disk is calibrated", id="nobody measured it"),
        pytest.param([SDA], ["io.max.wbps"], "io.max.wbps is not enforceable here", id="no caps"),
        pytest.param(
            [replace(SDA, uncharged=("/",))],
            [],
            "the page cache of sda is charged to nobody",
            id="write-back of nobody",
        ),
    ],
)
def test_what_annuls_a_floor_of_writes_is_said(disks: list[Disk], lacking: Iterable[str], reason: str) -> None:
    rate = judged({"disk_write": 40}, *disks, lacking=lacking).rates["diskWrite"]
    assert rate.amount == 0
    assert reason in rate.reason


def test_write_back_of_nobody_leaves_floors_of_reads() -> None:
    assert judged({"disk_read": 40}, replace(SDA, uncharged=("/",))).holds


def test_a_small_file_system_of_another_kind_annuls_nothing() -> None:
    assert judged({"disk_write": 40}, replace(SDA, holds=("/", "/boot/efi"), uncharged=("/boot/efi",))).holds


def test_floors_that_do_not_fit_together_are_worth_their_part_of_the_disk() -> None:
    rate = judged({"disk_read": 360}, SDA, other={"disk_write": 180}).rates["diskRead"]
    assert rate.amount == pytest.approx(180)
    assert rate.reason == "floors take 180% of sda, of which others keep a tenth"
