"""What others claim of the machine's memory is nobody's to promise, and is counted once."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.model.knob import Setting, TargetId, group
from j10ce.model.quantity import Bytes
from j10ce.model.snapshot import Foreign, Snapshot
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.effect.foreign_claims import claimed_by_others, held_beside
from j10ce.policy.entitlement.ledger import AGENT, Ledger
from j10ce.policy.entitlement.resolve import Beside, Resolution, resolve
from j10ce.policy.profiles import builtin
from j10ce.testing import build

GI = 1 << 30
DOCUMENT = NodeDocument(node="n1", profiles=builtin())


def book(*asked: tuple[str, str], beside: Beside, before: Ledger | None = None, memory: str = "8Gi") -> Resolution:
    workloads = [build.workload(name, profile="ls", min_memory=floor) for name, floor in asked]
    on = build.node(memory=memory)
    return resolve(workloads, DOCUMENT, on, wall=build.WALL, before=before, beside=beside)


def floor(resolved: Resolution, name: str) -> int:
    return resolved.entitlements[build.workload(name).target].floor.memory


def tree(*foreign: Foreign, slice_min: str = "0", inside: tuple[Foreign, ...] = (), floor: str = "0") -> Snapshot:
    """A service of ours below a group that is not ours, strangers beside and inside."""
    db = build.workload("db", handle=build.handle("svc/db"))
    e = build.entitlement(db, floor_memory=floor)
    groups = [build.group("", owned=False, foreign=foreign), build.group("svc", owned=False, foreign=inside)]
    present = {Setting(group("svc"), "memory.min"): float(build.memory(slice_min))}
    where = build.tree([db], {e.target: e}, groups=groups)
    return build.snapshot(e, workloads=[db], groups=where, values=present, on=build.node(memory="8Gi"))


STRANGER = Foreign("system.slice", 1024, memory_min=4.0 * GI)


@pytest.mark.parametrize(
    ("snap", "claimed"),
    [
        pytest.param(tree(STRANGER), 4 * GI, id="a group beside ours"),
        pytest.param(tree(Foreign("a", 1024, memory_min=math.inf)), 8 * GI, id="an absurd claim is the whole machine"),
        pytest.param(tree(slice_min="2Gi"), 2 * GI, id="a group above ours, without a floor inside"),
        pytest.param(tree(slice_min="2Gi", floor="1Gi"), 1 * GI, id="what it had covers our floor too"),
        pytest.param(tree(inside=(STRANGER,)), 0, id="claims without cover are worth nothing"),
        pytest.param(tree(inside=(STRANGER,), floor="1Gi"), 4 * GI, id="until the group above is raised for ours"),
        pytest.param(tree(inside=(STRANGER,), slice_min="6Gi", floor="1Gi"), 5 * GI, id="the larger of the two"),
    ],
)
def test_what_others_claim(snap: Snapshot, claimed: int) -> None:
    assert claimed_by_others(snap, {}) == claimed


def test_what_we_raised_a_group_to_is_not_taken_for_its_own() -> None:
    snap = tree(slice_min="3Gi", floor="3Gi")
    assert claimed_by_others(snap, {Setting(group("svc"), "memory.min"): 0.0}) == 0


def test_what_a_workload_had_before_us_beyond_its_floor_is_kept_too() -> None:
    snap = tree(floor="1Gi")
    had = {Setting(TargetId("workload/default/db"), "memory.min"): 3.0 * GI}
    assert held_beside(snap, had) == 2 * GI


def test_a_floor_that_others_leave_no_room_for_is_refused_and_they_are_named() -> None:
    resolution = book(("db", "7Gi"), beside=Beside(others=Bytes(4 * GI)))
    assert floor(resolution, "db") == 0
    (note,) = resolution.entitlements[build.workload("db").target].notes
    assert (
        "memory 7Gi wanted, 3.5Gi free of 3.5Gi; held by memory.min of cgroups that are not ours memory 4Gi"
        in note.text
    )


def test_the_agents_own_memory_is_in_the_book_and_named() -> None:
    own = Beside(agent=Bytes(GI))
    resolution = book(("db", "7Gi"), beside=own)
    assert floor(resolution, "db") == 0
    assert resolution.ledger.promised.memory == GI
    assert "held by agent memory 1Gi" in resolution.entitlements[build.workload("db").target].notes[0].text
    assert floor(book(("db", "6Gi"), beside=own), "db") == 6 * GI


def test_an_admitted_floor_is_not_cut_for_the_agent() -> None:
    """Not when the agent grows, and not when the machine shrinks: the agent's memory goes first."""
    before = book(("db", "7Gi"), beside=Beside(agent=Bytes(GI // 4))).ledger
    assert floor(book(("db", "7Gi"), beside=Beside(agent=Bytes(2 * GI)), before=before), "db") == 7 * GI
    smaller = book(("db", "7Gi"), beside=Beside(agent=Bytes(GI // 4)), before=before, memory="7680Mi")
    assert floor(smaller, "db") == 7 * GI
    assert smaller.ledger.get(AGENT) is None


sizes = st.integers(0, 9).map(lambda n: n * GI)


@given(sizes, sizes, st.lists(sizes, max_size=4))
def test_nothing_is_promised_twice(others: int, agent: int, asked: list[int]) -> None:
    claims = [(f"w{n}", str(size)) for n, size in enumerate(asked)]
    resolution = book(*claims, beside=Beside(Bytes(others), Bytes(agent)))
    promised = sum(line.amount.memory for line in resolution.ledger)
    assert promised == 0 or promised + others <= 8 * GI - GI // 2
