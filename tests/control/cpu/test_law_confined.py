"""The law of CPU floors where a group that is not ours has few CPUs: whenever weights exist that hold them, ours do."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from j10ce.control.floors import Floors
from j10ce.model import knob
from j10ce.model.knob import Setting, TargetId, Value
from j10ce.model.snapshot import Foreign, Snapshot
from j10ce.testing import build
from tests.control.cpu.sharing import kernel_v1, kernel_v2, weights_after

KERNELS = {"cgroup1": kernel_v1, "cgroup2": kernel_v2}
MARGIN = 1.03  # what rounding weights may cost
TOPS = [10 * 1.1**n for n in range(96)]  # up to the highest weight of both kernels
HIGHEST = 100_000.0
SVC, TOP = knob.group("svc"), knob.group("j10ce")
DB, FRIEND = knob.workload("default", "db"), knob.workload("default", "friend")


class Confined(NamedTuple):
    """A group with a CPU set on a machine of four, an adopted floor and a friend in it, a placed floor beside it."""

    weight: int
    cpus: int
    floor: int
    friend: int
    beside: int  # floor of the placed one
    strangers: int

    def times(self, top: float, db: float, friend: float) -> tuple[float, float]:
        """Millicores of the placed one and of the adopted one: on each CPU by weight, every weight spread evenly."""
        ours = confined = 0.0
        for cpu in range(4):
            inside = self.weight / self.cpus if cpu < self.cpus else 0.0
            total = top / 4 + self.strangers / 4 + inside
            ours += 1000 * top / 4 / total
            confined += 1000 * inside / total
        return ours, confined * db / (db + friend)

    def holds(self, times: tuple[float, float], margin: float) -> bool:
        return times[0] >= self.beside * margin and times[1] >= self.floor * margin


machines = st.builds(
    Confined,
    weight=st.sampled_from([512, 1024, 4096, 50_000]),
    cpus=st.sampled_from([1, 2, 3]),
    floor=st.sampled_from([50, 200, 400, 800, 1500]),
    friend=st.sampled_from([200, 1024, 6000]),
    beside=st.sampled_from([50, 300, 1000, 2000]),
    strangers=st.sampled_from([0, 300, 1024, 4096]),
)


def snapshot(machine: Confined, via: str) -> Snapshot:
    placed = build.workload("placed")
    db = build.workload("db", handle=build.handle("svc/db"))
    friend = build.workload("friend", handle=build.handle("svc/friend"))
    entitled = [
        build.entitlement(placed, tier="sensitive", floor_cpu=f"{machine.beside}m"),
        build.entitlement(db, floor_cpu=f"{machine.floor}m"),
        build.entitlement(friend, chosen=False),
    ]
    strangers = [Foreign("stranger", float(machine.strangers))] if machine.strangers else []
    groups = [build.group("", owned=False, foreign=strangers), build.group("svc", owned=False)]
    values: dict[Setting, Value] = {
        Setting(SVC, "cpu.weight"): KERNELS[via](machine.weight),
        Setting(SVC, "cpuset.cpus"): frozenset(range(machine.cpus)),
        Setting(FRIEND, "cpu.weight"): KERNELS[via](machine.friend),
    }
    tree = build.tree([placed, db, friend], {e.target: e for e in entitled}, groups=groups)
    snap = build.snapshot(*entitled, workloads=[placed, db, friend], groups=tree, values=values, on=build.node(4))
    return msgspec.structs.replace(snap, support=build.support(via=via))


@pytest.mark.parametrize("via", KERNELS)
@given(machine=machines)
def test_whenever_weights_exist_that_hold_floors_below_few_cpus_ours_do(via: str, machine: Confined) -> None:
    has = machine._replace(weight=int(KERNELS[via](machine.weight)), friend=int(KERNELS[via](machine.friend)))
    assume(any(has.holds(has.times(top, HIGHEST, has.friend), MARGIN) for top in TOPS))
    snap = snapshot(machine, via)
    after = weights_after(snap, Floors(Floors.Config()).propose(snap), KERNELS[via])
    got = has.times(after[TargetId(TOP)], after[TargetId(DB)], after[TargetId(FRIEND)])
    assert has.holds(got, 1 - 1e-9), got


STEPS = [10 * 1.3**n for n in range(36)]  # for two weights at once


class Adopted(NamedTuple):
    """An adopted floor that came with a weight and a CPU set, on a machine of four beside strangers and a placed floor;
    `fixed` is a group that is not ours, with a CPU set and an adopted floor of its own inside."""

    came_with: int
    cpus: frozenset[int]
    floor: int
    beside: int
    strangers: int
    fixed: int
    fixed_cpus: frozenset[int]
    fixed_floor: int

    def times(self, top: float, own: float) -> tuple[float, float, float]:
        """Millicores of the placed one, the adopted one and the group."""
        got = [0.0, 0.0, 0.0]
        for cpu in range(4):
            here = (
                top / 4,
                own / len(self.cpus) if cpu in self.cpus else 0.0,
                self.fixed / len(self.fixed_cpus) if cpu in self.fixed_cpus else 0.0,
            )
            total = sum(here) + self.strangers / 4
            got = [g + 1000 * h / total for g, h in zip(got, here, strict=True)]
        return got[0], got[1], got[2]

    def holds(self, times: tuple[float, float, float], margin: float) -> bool:
        needs = (self.beside, self.floor, self.fixed_floor)
        return all(time >= need * margin for time, need in zip(times, needs, strict=True))


few = st.sampled_from([frozenset(cpus) for cpus in ({0}, {3}, {0, 1}, {1, 2}, {2, 3}, {0, 1, 2}, {0, 1, 2, 3})])
came_confined = st.builds(
    Adopted,
    came_with=st.sampled_from([100, 1024, 6000]),
    cpus=few,
    floor=st.sampled_from([50, 200, 400, 800, 1500]),
    beside=st.sampled_from([50, 300, 1000, 2000]),
    strangers=st.sampled_from([300, 1024, 4096]),
    fixed=st.sampled_from([512, 1024, 4096]),
    fixed_cpus=few,
    fixed_floor=st.sampled_from([50, 200, 600]),
)


def machine_of(world: Adopted, via: str) -> Snapshot:
    placed, inner = build.workload("placed"), build.workload("inner", handle=build.handle("svc/inner"))
    db = build.workload("db", handle=build.handle("db.service"))
    entitled = [
        build.entitlement(placed, tier="sensitive", floor_cpu=f"{world.beside}m"),
        build.entitlement(db, floor_cpu=f"{world.floor}m"),
        build.entitlement(inner, floor_cpu=f"{world.fixed_floor}m"),
    ]
    strangers = [Foreign("stranger", float(world.strangers))]
    groups = [build.group("", owned=False, foreign=strangers), build.group("svc", owned=False)]
    values: dict[Setting, Value] = {
        Setting(SVC, "cpu.weight"): KERNELS[via](world.fixed),
        Setting(SVC, "cpuset.cpus"): world.fixed_cpus,
        Setting(DB, "cpu.weight"): KERNELS[via](world.came_with),
        Setting(DB, "cpuset.cpus"): world.cpus,
    }
    tree = build.tree([placed, db, inner], {e.target: e for e in entitled}, groups=groups)
    snap = build.snapshot(*entitled, workloads=[placed, db, inner], groups=tree, values=values, on=build.node(4))
    return msgspec.structs.replace(snap, support=build.support(via=via))


@pytest.mark.parametrize("via", KERNELS)
@given(world=came_confined)
def test_whenever_weights_hold_the_floor_of_a_workload_that_came_with_few_cpus_ours_do(
    via: str, world: Adopted
) -> None:
    kernel = KERNELS[via]
    has = world._replace(fixed=int(kernel(world.fixed)), came_with=int(kernel(world.came_with)))
    own = [float(has.came_with), *(w for w in STEPS if w > has.came_with)]
    assume(any(has.holds(has.times(top, weight), MARGIN) for top in STEPS for weight in own))
    snap = machine_of(world, via)
    after = weights_after(snap, Floors(Floors.Config()).propose(snap), kernel)
    got = has.times(after[TargetId(TOP)], after[TargetId(DB)])
    assert has.holds(got, 1 - 1e-9), got
