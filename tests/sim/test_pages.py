"""Memory of a simulated machine is held, taken and lost as on a real one."""

from __future__ import annotations

import pytest

from j10ce.sim.cgroups import FakeCgroups
from j10ce.sim.pages import Appetite, Pages

GI = float(1 << 30)


def pages(total: float = 8 * GI, **values: dict[str, float]) -> Pages:
    cgroups = FakeCgroups("v2", 4, 4096, ())
    for path, here in values.items():
        cgroups.make(path)
        cgroups.by_path[path].values.update(here)
    return Pages(cgroups, total)


def held(of: Pages, path: str) -> float:
    return of._cgroups.by_path[path].memory_current / GI


def all_hot(size: float) -> Appetite:
    return Appetite(size * GI, size * GI)


def test_whoever_wants_memory_that_is_free_gets_it_without_waiting() -> None:
    machine = pages(a={}, b={})
    meals = machine.step({"a": all_hot(3), "b": all_hot(4)})
    assert (held(machine, "a"), held(machine, "b"), machine.killed) == (3, 4, [])
    assert all(meal.stalled == 0 for meal in meals.values())


def test_cold_pages_make_room_and_protected_ones_stay() -> None:
    machine = pages(cache={}, kept={"memory.low": 3 * GI}, hog={})
    cold = {"cache": Appetite(3 * GI, GI), "kept": Appetite(3 * GI, GI)}
    machine.step(cold)
    machine.step({**cold, "hog": all_hot(3)})
    assert held(machine, "kept") == 3
    assert held(machine, "hog") == 3
    assert 1 <= held(machine, "cache") < 3
    assert machine.killed == []


def test_when_nothing_can_be_taken_the_largest_is_killed() -> None:
    machine = pages(small={}, large={"memory.min": 6 * GI})
    machine.step({"small": all_hot(1), "large": all_hot(6)})
    meals = machine.step({"small": all_hot(3), "large": all_hot(6)})
    assert machine.killed == ["large"]
    assert meals["small"].stalled > 0


def test_above_memory_high_a_workload_crawls_and_waits() -> None:
    machine = pages(braked={"memory.high": 2 * GI})
    for _ in range(3):
        meals = machine.step({"braked": all_hot(6)})
    assert 2 <= held(machine, "braked") < 2.5
    assert meals["braked"].stalled > 0.9


@pytest.mark.parametrize(("asked", "refaults"), [(2, 0), (3, 1)], ids=["only cold", "hot ones, too"])
def test_a_reclaim_takes_cold_pages_first_and_hot_ones_are_read_again(asked: int, refaults: int) -> None:
    machine = pages(a={})
    wants = {"a": Appetite(3 * GI, GI)}
    machine.step(wants)
    assert machine.reclaim("a", asked * GI) == pytest.approx(asked * GI)
    assert machine.step(wants)["a"].refaults == pytest.approx(refaults * GI)
