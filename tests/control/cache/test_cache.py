"""Who fills which part of the cache: percentages, groups, and a CPU that has too few of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.control.cache.cache import Caches
from j10ce.control.cache.shares import bandwidth, ways
from j10ce.errors import Invalid
from j10ce.host.resctrl import mask
from j10ce.model.kinds import CacheSection
from j10ce.model.knob import GROUP_NAME, Setting, Support, TargetId, Value, group_name, resctrl
from j10ce.model.machine.cache import Bandwidth, CacheControl, Ways
from j10ce.model.parts.sections import ProfileOverlay
from j10ce.model.plan import Proposal
from j10ce.model.snapshot import Piece, Snapshot
from j10ce.model.workload import Entitlement, Overrides, Workload
from j10ce.testing import build
from j10ce.testing.beside.fake_resctrl import FakeResctrl
from tests.koordinator.theirs.laws import resctrl as theirs

INTEL = CacheControl(Ways(("0", "1"), 20), Bandwidth(("0", "1")), groups=15)
THIRTY = CacheSection(llc_end_percent=30)
WANTED = {"resctrl.l3": Support(True), "resctrl.mb": Support(True), "resctrl.group": Support(True)}


def web(name: str, cache: CacheSection = THIRTY, *, own: bool = False, **of: Any) -> tuple[Workload, Entitlement]:
    overrides = Overrides(ProfileOverlay(cache=cache)) if own else Overrides()
    w = build.workload(name, overrides=overrides, priority=of.pop("priority", None))
    return w, replace(build.entitlement(w, **{"profile": "be", "tier": "besteffort"} | of), cache=cache)


def snapshot(*who: tuple[Workload, Entitlement], control: CacheControl = INTEL, **more: Any) -> Snapshot:
    snap = build.snapshot(*(e for _, e in who), workloads=[w for w, _ in who], on=build.node(cache=control))
    return replace(snap, support=more.pop("support", WANTED), **more)


def proposed(snap: Snapshot) -> dict[Setting, Proposal]:
    every = list(Caches(Caches.Config()).propose(snap))
    assert len({p.setting for p in every}) == len(every)
    return {p.setting: p for p in every}


def values(snap: Snapshot) -> dict[str, Value]:
    return {str(s): p.value for s, p in proposed(snap).items()}


def home(snap: Snapshot, w: Workload) -> tuple[Value, str]:
    p = proposed(snap)[Setting(w.target, "resctrl.group")]
    return p.value, p.reason


def test_a_class_has_a_group_with_its_ways_in_every_cache_and_all_its_workloads() -> None:
    a, b = web("a"), web("b")
    assert values(snapshot(a, b)) == {
        "resctrl/j10ce-be resctrl.l3[0]": frozenset(range(6)),
        "resctrl/j10ce-be resctrl.l3[1]": frozenset(range(6)),
        "workload/default/a resctrl.group": "j10ce-be",
        "workload/default/b resctrl.group": "j10ce-be",
    }
    reasons = {p.reason for s, p in proposed(snapshot(a)).items() if s.knob == "resctrl.l3"}
    assert reasons == {"ways 0-5 of 20: 0 to 30 % of the cache, profile be"}


def test_bandwidth_alone_makes_a_group_too() -> None:
    a = web("a", CacheSection(memory_bandwidth_percent=45))
    assert values(snapshot(a))["resctrl/j10ce-be resctrl.mb[1]"] == 50.0
    assert not any("l3" in name for name in values(snapshot(a)))


def test_what_is_said_of_one_workload_alone_gets_a_group_of_its_own() -> None:
    a, own = web("a"), web("b", CacheSection(llc_start_percent=50), own=True)
    got = values(snapshot(a, own))
    assert got["resctrl/j10ce-default_b resctrl.l3[0]"] == frozenset(range(10, 20))
    assert got["workload/default/b resctrl.group"] == "j10ce-default_b"
    assert got["workload/default/a resctrl.group"] == "j10ce-be"


def test_one_of_which_the_same_is_said_as_of_its_class_needs_no_group_of_its_own() -> None:
    a, same = web("a"), web("b", own=True)
    assert values(snapshot(a, same))["workload/default/b resctrl.group"] == "j10ce-be"


def test_system_stays_in_the_roots_group_and_it_is_said() -> None:
    a = web("a", tier="system", profile="system")
    assert home(snapshot(a), a[0]) == ("", "tier system stays in the root's group")


def test_a_full_cpu_keeps_groups_for_whoever_matters_more() -> None:
    common = web("a")
    low = web("low", CacheSection(llc_end_percent=50), own=True, priority=1)
    high = web("high", CacheSection(llc_end_percent=60), own=True, priority=9)
    snap = snapshot(common, low, high, control=replace(INTEL, groups=2))
    assert home(snap, high[0]) == ("j10ce-default_high", "something is said of its cache alone")
    group, why = home(snap, low[0])
    assert group == "j10ce-be"
    assert why == ("shares the group of profile be: the CPU has room for 2 groups of ours, which others need more")
    assert "resctrl/j10ce-default_low resctrl.l3[0]" not in values(snap)


def test_classes_find_room_from_the_most_protected_down_and_the_rest_stays_in_the_roots() -> None:
    be, ls = web("a"), web("b", profile="ls", tier="sensitive")
    snap = snapshot(be, ls, control=replace(INTEL, groups=1))
    assert home(snap, ls[0])[0] == "j10ce-ls"
    group, why = home(snap, be[0])
    assert group == ""
    assert "room for 1 group of ours" in why


def test_groups_of_others_take_room() -> None:
    a = web("a")
    pieces = {t: Piece(t, owned=False) for t in (resctrl("theirs"), resctrl("more"))}
    control = replace(INTEL, groups=2)
    assert home(snapshot(a, control=control, pieces=pieces), a[0])[0] == ""
    ours = {TargetId("resctrl/j10ce-be"): Piece(resctrl("j10ce-be"), owned=True)}
    assert home(snapshot(a, control=replace(INTEL, groups=1), pieces=ours), a[0])[0] == "j10ce-be"


@pytest.mark.parametrize(
    ("control", "why"),
    [
        pytest.param(replace(INTEL, ways=None), "the CPU divides bandwidth only", id="MBA only"),
        pytest.param(
            CacheControl(None, Bandwidth(("0",), unit="MB/s"), 15), "a percentage of bandwidth means", id="MBps"
        ),
    ],
)
def test_what_cannot_be_said_to_the_cpu_makes_no_group_and_is_said(control: CacheControl, why: str) -> None:
    a = web("a")
    snap = snapshot(a, control=control)
    assert list(values(snap)) == ["workload/default/a resctrl.group"]
    assert home(snap, a[0])[0] == ""
    assert why in home(snap, a[0])[1]


def test_without_resctrl_and_for_whom_nobody_chose_nothing_is_proposed() -> None:
    assert not proposed(snapshot(web("a"), support={}))
    assert not proposed(snapshot(web("a"), control=CacheControl()))
    assert not proposed(snapshot(web("a", chosen=False)))
    assert not proposed(snapshot(web("a", CacheSection())))


@given(st.integers(1, 32), st.integers(0, 99), st.integers(1, 100), st.integers(1, 4))
def test_ways_are_what_their_law_says_and_never_fewer_than_the_cpu_needs(
    count: int, start: int, end: int, least: int
) -> None:
    least = min(least, count)
    if start >= end:
        return
    held = ways(CacheSection(llc_start_percent=start, llc_end_percent=end), Ways(("0",), count, least))
    assert held is not None
    assert held == frozenset(range(min(held), max(held) + 1))
    assert len(held) >= least
    assert max(held) < count
    try:
        law = theirs.l3_mask((1 << count) - 1, start, end)
    except Invalid:
        return
    if int(law, 16).bit_count() >= least:
        assert mask(held) == law


@given(st.integers(1, 100))
def test_bandwidth_is_what_their_law_says(percent: int) -> None:
    section = CacheSection(memory_bandwidth_percent=percent)
    assert bandwidth(section, Bandwidth(("0",))) == float(theirs.mba_value("GenuineIntel", percent))
    amd = bandwidth(section, Bandwidth(("0",), "eighths of GB/s", 1, 1, 2048))
    assert amd == float(theirs.mba_value(theirs.AMD, percent))


@given(
    st.integers(2, 20), st.integers(0, 99), st.integers(1, 100), st.integers(1, 100), st.booleans(), st.integers(1, 3)
)
def test_the_kernel_takes_every_value_that_is_proposed(
    count: int, start: int, end: int, percent: int, amd: bool, least: int
) -> None:
    caches = FakeResctrl(ways=count, least=min(least, count), amd=amd)
    section = CacheSection(llc_start_percent=min(start, end - 1), llc_end_percent=end, memory_bandwidth_percent=percent)
    a = web("a", section)
    for name, value in values(snapshot(a, control=caches.control())).items():
        target, _, knob = name.partition(" ")
        if target == "resctrl/j10ce-be":
            caches.make("j10ce-be")
            line = f"L3:0={mask(value)}" if isinstance(value, frozenset) else f"MB:0={value:.0f}"
            assert caches.write("j10ce-be/schemata", line) is None, (knob, value)


@given(st.text(max_size=200), st.text(max_size=200))
def test_every_text_has_a_name_of_its_own(one: str, other: str) -> None:
    assert GROUP_NAME.fullmatch(group_name(one))
    if one != other:
        assert group_name(one) != group_name(other)
