"""The law of CPU floors: whenever weights exist that hold all of them, ours do; and nobody is weighed down for more."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from j10ce.control.floors import Floors
from j10ce.model import knob
from j10ce.model.knob import ROOT, Setting, TargetId, Value
from j10ce.model.plan import Proposal
from j10ce.model.snapshot import Foreign, Snapshot
from j10ce.model.workload import Entitlement, Workload
from j10ce.testing import build
from tests.control.cpu.feasible import Child, least
from tests.control.cpu.sharing import kernel_v1, kernel_v2, millicores, weights_after

KERNELS = {"cgroup1": kernel_v1, "cgroup2": kernel_v2}
RANGE = {"cgroup1": (2, 262_144), "cgroup2": (10, 102_400)}  # shares
MILLICORES = 4000
MARGIN = 1.03  # what rounding weights may cost


class Job(NamedTuple):
    """A workload: `kind` is placed (by us), adopted (raised at need) or unchosen (left alone)."""

    kind: str
    amount: int  # floor, or request of an unchosen one
    weight: int = 1024  # before us


class Slice(NamedTuple):
    """A group that is not ours, with a weight of its own."""

    weight: int
    strangers: int
    jobs: tuple[Job, ...]


class Machine(NamedTuple):
    placed: tuple[Job, ...]
    strangers: int
    slices: tuple[Slice, ...]


amounts = st.sampled_from([0, 50, 200, 400, 800, 1500])
weights = st.sampled_from([200, 512, 1024, 2048, 6000])
strangers = st.sampled_from([0, 300, 1024, 4096])
adopted = st.builds(Job, st.sampled_from(["adopted", "unchosen"]), amounts, weights)
slices = st.builds(Slice, weights, strangers, st.lists(adopted, min_size=1, max_size=3).map(tuple))
placed = st.lists(st.builds(Job, st.just("placed"), amounts), max_size=3).map(tuple)
machines = st.builds(Machine, placed, strangers, st.lists(slices, max_size=2).map(tuple))


def snapshot(machine: Machine, via: str) -> Snapshot:
    """A slice holds a slice when there are two: ancestors nest."""
    pairs: list[tuple[Workload, Entitlement]] = [_ours(n, j) for n, j in enumerate(machine.placed)]
    values: dict[Setting, Value] = {}
    above, groups = "", [build.group("", owned=False, foreign=_strangers(machine.strangers))]
    for n, s in enumerate(machine.slices):
        above = f"{above}/slice{n}".lstrip("/")
        groups.append(build.group(above, owned=False, foreign=_strangers(s.strangers)))
        values[Setting(knob.group(above), "cpu.weight")] = KERNELS[via](s.weight)
        for m, job in enumerate(s.jobs):
            w, e = _theirs(f"{n}-{m}", f"{above}/w{m}", job)
            values[Setting(w.target, "cpu.weight")] = KERNELS[via](job.weight)
            pairs.append((w, e))
    workloads, entitled = [w for w, _ in pairs], [e for _, e in pairs]
    tree = build.tree(workloads, {e.target: e for e in entitled}, groups=groups)
    snap = build.snapshot(*entitled, workloads=workloads, groups=tree, values=values, on=build.node(4))
    return msgspec.structs.replace(snap, support=build.support(via=via))


def _strangers(weight: int) -> list[Foreign]:
    return [Foreign("stranger", float(weight))] if weight else []


def _ours(n: int, job: Job) -> tuple[Workload, Entitlement]:
    w = build.workload(f"placed{n}")
    return w, build.entitlement(w, tier=("standard", "sensitive")[n % 2], floor_cpu=f"{job.amount}m")


def _theirs(name: str, path: str, job: Job) -> tuple[Workload, Entitlement]:
    request = f"{job.amount if job.kind == 'unchosen' else 0}m"
    w = build.workload(name, handle=build.handle(path), cpu=request)
    floor = f"{job.amount if job.kind == 'adopted' else 0}m"
    return w, build.entitlement(w, floor_cpu=floor, chosen=job.kind == "adopted")


def children(machine: Machine, via: str, margin: float) -> list[Child]:
    """The same machine for the oracle, with everything promised a little larger."""
    low, high = RANGE[via]

    def stranger(weight: int) -> Child:
        return Child(0, weight, weight)

    def job(j: Job) -> Child:
        has = int(KERNELS[via](j.weight))
        least, most = (has, has) if j.kind == "unchosen" else (has, high) if j.kind == "adopted" else (low, high)
        return Child(int(j.amount * margin), least, most)

    def nested(n: int) -> tuple[Child, ...]:
        if n == len(machine.slices):
            return ()
        s = machine.slices[n]
        inside = [job(j) for j in s.jobs]
        has = int(KERNELS[via](s.weight))
        return (Child(0, has, has, (*inside, stranger(s.strangers), *nested(n + 1))),)

    ours = tuple(job(j) for j in machine.placed)
    top = Child(0, low, high, ours)
    return [top, stranger(machine.strangers), *nested(0)]


def promised(snap: Snapshot) -> dict[TargetId, int]:
    """Floors, and requests of those whom nobody chose."""
    return {t: e.floor.cpu if e.chosen else e.requests.cpu for t, e in snap.entitlements.items()}


def run(snap: Snapshot, floors: Floors | None = None) -> tuple[list[Proposal], dict[TargetId, float]]:
    proposals = [p for p in (floors or Floors(Floors.Config())).propose(snap) if p.setting.knob == "cpu.weight"]
    return proposals, weights_after(snap, proposals, KERNELS[snap.support["cpu.weight"].via])


# A light group of someone else: nobody fresh fits beside ours, but what weights lose when they are rounded does.
LIGHT = Machine(
    (Job("placed", 400), Job("placed", 200), Job("placed", 200)), 0, (Slice(200, 0, (Job("adopted", 800, 200),)),)
)


@pytest.mark.parametrize("via", KERNELS)
@example(machine=LIGHT)
@given(machine=machines)
def test_whenever_weights_exist_that_hold_all_floors_ours_do(via: str, machine: Machine) -> None:
    assume(least(children(machine, via, MARGIN)) <= MILLICORES)
    snap = snapshot(machine, via)
    _, after = run(snap)
    got = millicores(snap, after)
    assert {t: (got[t], n) for t, n in promised(snap).items() if got[t] < n * (1 - 1e-9)} == {}


@pytest.mark.parametrize("via", KERNELS)
@given(machine=machines)
def test_what_is_not_ours_is_never_asked_to_change(via: str, machine: Machine) -> None:
    snap = snapshot(machine, via)
    proposals, after = run(snap)
    for p in proposals:
        t = p.setting.target
        chosen = t in snap.entitlements and snap.entitlements[t].chosen
        assert snap.groups[t].owned or chosen
    for t, e in snap.entitlements.items():
        if e.chosen and not snap.groups[t].owned:
            assert after[t] >= snap.settings[Setting(t, "cpu.weight")], "an adopted one is only raised"


@pytest.mark.parametrize("via", KERNELS)
@given(machine=machines, more=st.lists(machines, max_size=3))
def test_weights_come_down_when_the_reason_is_gone(via: str, machine: Machine, more: list[Machine]) -> None:
    """Whatever happened before, what neighbours feel is within a fifth of what a fresh start would choose."""
    floors = Floors(Floors.Config())
    for other in more:
        run(snapshot(other, via), floors)
    snap = snapshot(machine, via)
    _, kept = run(snap, floors)
    _, fresh = run(snap)
    low, _ = RANGE[via]
    beside = [t for t, g in snap.groups.by_target.items() if g.parent is not None and not snap.groups[g.parent].owned]
    assert {t: (kept[t], fresh[t]) for t in beside if kept[t] > fresh[t] * 2 ** (1 / 4) + 2 * low} == {}


@pytest.mark.parametrize("via", KERNELS)
@given(machine=machines)
def test_weights_in_force_raise_no_weights_further(via: str, machine: Machine) -> None:
    """No ratchet: with everything applied and read back, the same is wished again."""
    snap, floors = snapshot(machine, via), Floors(Floors.Config())
    first, after = run(snap, floors)
    present = {**snap.settings, **{Setting(t, "cpu.weight"): w for t, w in after.items() if t != ROOT}}
    applied = msgspec.structs.replace(snap, settings=present, originals=snap.settings, epoch=2)
    again, _ = run(applied, floors)
    assert [(p.setting, p.value) for p in again] == [(p.setting, p.value) for p in first]


@given(floor=st.integers(1, 3600), weight=st.sampled_from([1024, 2048, 5000, 20_000]))
def test_whoever_is_unmanaged_keeps_all_that_floors_do_not_need(floor: int, weight: int) -> None:
    machine = Machine((Job("placed", floor),), weight, ())
    snap = snapshot(machine, "cgroup1")
    _, after = run(snap)
    got = millicores(snap, after)[TargetId("group/j10ce")]
    assert floor <= got <= floor * 1.06 + 10, "a weight is a whole number, and lasts a while"
