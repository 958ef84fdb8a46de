"""Who goes, in which order, and who never does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.control.eviction.victims import Victim, candidates, choose, leaving
from j10ce.model.kinds import Tier
from j10ce.model.knob import Deed, Setting, TargetId
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import HOST_NAMESPACE, EvictionHints, EvictionTrigger, Overrides, Workload
from j10ce.testing import build
from tests.koordinator.theirs.laws import victims as literal

MIB = 1 << 20


def pod(name: str, priority: int | None = 5500, **hints: Any) -> Workload:
    return replace(build.workload(name), priority=priority, overrides=Overrides(eviction=EvictionHints(**hints)))


def snapshot(*pods: tuple[Workload, str, float], said: dict[str, Any] | None = None) -> Snapshot:
    """(pod, tier, MiB in use)"""
    entitled = [build.entitlement(w, tier=tier) for w, tier, _ in pods]
    readings = {(w.target, "memory.current"): used * MIB for w, _, used in pods}
    snap = build.snapshot(*entitled, workloads=[w for w, _, _ in pods], readings=readings)
    return replace(snap, strategy=build.strategy("s", {"eviction": said or {}}).spec)


def names(snap: Snapshot, trigger: EvictionTrigger = "memory") -> list[str]:
    return [v.target.rpartition("/")[2] for v in candidates(snap, trigger)]


ORDER = [
    pytest.param([(pod("a"), 1), (pod("b"), 2)], ["b", "a"], id="who uses most"),
    pytest.param([(pod("a", 5001), 9), (pod("b", 5000), 1)], ["b", "a"], id="the lower priority before usage"),
    pytest.param([(pod("a", None), 1), (pod("b", 1), 9)], ["a", "b"], id="who has no priority counts as 0"),
    pytest.param([(pod("a", 9, order=1), 9), (pod("b", 99), 1)], ["b", "a"], id="an annotation before priority"),
    pytest.param([(pod("a", rank=6), 9), (pod("b", rank=5), 1)], ["b", "a"], id="a rank before usage"),
    pytest.param([(pod("a", rank=6), 9), (pod("b"), 1)], ["a", "b"], id="without a rank it is the priority"),
]


@pytest.mark.parametrize(("pods", "expected"), ORDER)
def test_order(pods: list[tuple[Workload, float]], expected: list[str]) -> None:
    assert names(snapshot(*((w, "besteffort", used) for w, used in pods))) == expected


def test_best_effort_goes_before_whoever_else_is_willing() -> None:
    snap = snapshot((pod("a", 1, willing=True), "sensitive", 9), (pod("b", 5000), "besteffort", 1))
    assert names(snap) == ["b", "a"]


def test_who_is_neither_best_effort_nor_willing_stays() -> None:
    assert names(snapshot((pod("a"), "standard", 9), (pod("b"), "sensitive", 9))) == []


def test_the_system_stays_however_willing_and_so_do_applications_of_the_host() -> None:
    assert names(snapshot((pod("a", willing=True), Tier.SYSTEM.value, 9))) == []
    assert names(snapshot((replace(pod("a"), namespace=HOST_NAMESPACE), "besteffort", 9))) == []


def test_satisfaction_of_best_effort_moves_best_effort_alone() -> None:
    assert names(snapshot((pod("a", willing=True), "standard", 9)), "satisfaction") == []


def test_a_workload_says_which_triggers_may_move_it() -> None:
    nobodys = (pod("c", triggers=()), "besteffort", 5.0)
    snap = snapshot((pod("a", triggers=("cpu",)), "besteffort", 9), (pod("b"), "besteffort", 1), nobodys)
    assert names(snap) == ["b"]
    assert set(names(snap, "cpu")) == {"a", "b"}


def test_nobody_above_the_strategys_priority_goes() -> None:
    pods = [(pod("a", 6000), "besteffort", 9.0), (pod("b", 5999), "besteffort", 1.0)]
    assert names(snapshot(*pods, said={"priorityThreshold": 5999})) == ["b"]
    lent = {"allocatable": {"priorityThreshold": 5999}}
    assert names(snapshot(*pods, said=lent), "lent-memory") == ["b"]
    assert names(snapshot(*pods, said=lent)) == ["b", "a"]


def test_who_is_held_and_who_is_not_chosen_stays() -> None:
    snap = snapshot((pod("a"), "besteffort", 9), (pod("b"), "besteffort", 1))
    held = replace(snap, held=frozenset({Setting(TargetId("workload/default/a"), "evict")}))
    assert names(held) == ["b"]
    classified = {t: replace(e, chosen=False) for t, e in snap.entitlements.items()}
    assert names(replace(snap, entitlements=classified)) == []


def test_who_is_ended_or_was_asked_a_moment_ago_is_leaving_and_a_namesake_is_not() -> None:
    ended, asked, late, again = (replace(build.workload(n), leaving=n == "ended") for n in ("ended", "b", "c", "d"))
    again = replace(again, since=build.WALL - 10)
    times = {asked.target: 30.0, late.target: 90.0, again.target: 30.0}
    done = {(Deed.EVICT, t): build.WALL - ago for t, ago in times.items()}
    snap = replace(build.snapshot(workloads=[ended, asked, late, again]), done=done)
    assert leaving(snap, 60.0) == {ended.target, asked.target}


VICTIMS = st.lists(st.floats(0, 100), max_size=10).map(
    lambda frees: [Victim(TargetId(f"workload/default/w{n}"), f, (n,)) for n, f in enumerate(frees)]
)


@given(VICTIMS, st.floats(0, 500), st.sets(st.integers(0, 9)))
def test_victims_are_those_of_the_literal_law(victims: list[Victim], amount: float, going: set[int]) -> None:
    """Theirs counts who leaves when its turn comes, ours from the start: nobody goes for what is on its way."""
    away = {v.target for n, v in enumerate(victims) if n in going}
    first = sorted(victims, key=lambda v: v.target not in away)
    pods = [literal.Candidate(v.target, {"memory": v.frees}, leaving=v.target in away) for v in first]  # type: ignore[dict-item]
    expected = literal.evict(pods, {"memory": amount}).victims  # type: ignore[dict-item]
    assert tuple(v.target for v in choose(victims, amount, away)) == expected


@given(VICTIMS, st.floats(0, 500))
def test_no_victim_is_one_too_many(victims: list[Victim], amount: float) -> None:
    chosen = choose(victims, amount)
    assert not chosen or sum(v.frees for v in chosen[:-1]) < amount
    assert all(v.frees > 0 for v in chosen)
