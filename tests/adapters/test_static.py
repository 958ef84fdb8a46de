"""Local workloads: listed, then followed from arrival to end."""

from __future__ import annotations

import signal
import subprocess

import pytest
from msgspec.structs import replace

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.adapters.static import AT_LEAST, ROUNDS, StaticAdapter
from j10ce.errors import Conflict, NotFound
from j10ce.model.knob import TargetId, workload
from j10ce.model.workload import Workload
from j10ce.testing import build

WEB = workload("default", "web")


class House:
    """Who lives where; None: the cgroup is gone."""

    def __init__(self) -> None:
        self.inside: dict[TargetId, list[int] | None] = {}
        self.looked: list[TargetId] = []
        self.restarting: set[TargetId] = set()

    def pids(self, workload: Workload, /) -> list[int] | None:
        self.looked.append(workload.target)
        return self.inside.get(workload.target, [])

    def returns(self, workload: Workload, /) -> bool:
        return workload.target in self.restarting


def named(event: WorkloadEvent) -> tuple[str, str]:
    return event.type, event.workload.name if event.workload else ""


async def test_what_is_known_is_listed_and_who_changes_it_gets_the_event() -> None:
    adapter = StaticAdapter([build.workload("old")], House())
    assert [named(event) async for event in adapter.workloads()] == [("ADDED", "old"), ("SYNCED", "")]
    assert named(adapter.add(build.workload("web"))) == ("ADDED", "web")
    assert named(adapter.remove(WEB)) == ("DELETED", "web")


@pytest.mark.parametrize("end", [pytest.param([], id="empty"), pytest.param(None, id="gone")])
def test_a_workload_ends_when_its_cgroup_is_empty_or_gone(end: list[int] | None) -> None:
    house = House()
    adapter = StaticAdapter([build.workload("web")], house)
    house.inside[WEB] = [7]
    assert adapter.sweep() == []
    assert WEB in adapter
    house.inside[WEB] = end
    assert [named(event) for event in adapter.sweep()] == [("DELETED", "web")]
    assert WEB not in adapter


@pytest.mark.parametrize("between", [pytest.param([], id="empty"), pytest.param(None, id="gone")])
def test_an_adopted_unit_waits_for_its_next_process(between: list[int] | None) -> None:
    house = House()
    adapter = StaticAdapter([build.workload("web")], house)
    house.restarting.add(WEB)
    for inside in ([7], between, between, [8], between):
        house.inside[WEB] = inside
        adapter.sweep()
    assert WEB in adapter
    adapter.remove(WEB)
    assert WEB not in adapter


def test_one_that_nobody_has_entered_yet_is_early_not_over() -> None:
    house = House()
    adapter = StaticAdapter([], house)
    adapter.add(build.workload("web"))
    adapter.sweep()
    assert WEB in adapter
    house.inside[WEB] = [7]
    adapter.sweep()
    house.inside[WEB] = []
    adapter.sweep()
    assert WEB not in adapter


def test_names_are_unique_and_unknown_ones_are_reported() -> None:
    adapter = StaticAdapter([build.workload("web")], House())
    with pytest.raises(Conflict):
        adapter.add(build.workload("web"))
    with pytest.raises(NotFound):
        adapter.remove(workload("default", "nobody"))


def test_every_workload_has_its_turn_within_a_few_rounds() -> None:
    house = House()
    count = AT_LEAST * ROUNDS * 2
    adapter = StaticAdapter([build.workload(f"w{n}") for n in range(count)], house)
    house.inside = {w.target: [1] for w in adapter.known()}
    for _ in range(ROUNDS):
        adapter.sweep()
    assert len(house.looked) == len(set(house.looked)) == count


async def test_eviction_asks_every_process_to_end() -> None:
    house = House()
    adapter = StaticAdapter([build.workload("web")], house)
    with subprocess.Popen(["sleep", "100"]) as kid:
        house.inside[WEB] = [kid.pid, 4194304]
        await adapter.evict(WEB, "memory is short")
        assert kid.wait(10) == -signal.SIGTERM


def test_one_whose_process_ends_as_soon_as_it_is_in_ends_too() -> None:
    adapter = StaticAdapter([], House())
    adapter.add(replace(build.workload("web"), pids=(7,)))
    adapter.settle(replace(build.workload("web"), pids=()))
    adapter.sweep()
    assert WEB not in adapter
