"""What nodes obey does not flicker: not when another policy changes, nor when units move, nor with a fresh leader."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.manager.documents.documents import Documents
from j10ce.manager.policies.reports import NEVER, Laggards, Reports
from j10ce.model.kinds import (
    Condition,
    Meta,
    MinimalReservationPolicy,
    NodeQoS,
    NodeQoSStatus,
    NodeReport,
    Object,
    ReservationReport,
    Witness,
)
from j10ce.model.parts.progress import NodeCount
from j10ce.model.stored import Event
from j10ce.testing.build import WALL, reservation
from tests.hearing import by_heartbeat

ADMITTED = (Condition(type="Admitted", status="True"),)


class Leader:
    """Its documents, which every manager keeps, and what it has heard since it leads."""

    def __init__(self) -> None:
        self.documents = Documents()
        self.wall = WALL
        self.reports = Reports(self.documents, by_heartbeat(lambda: self.wall))
        self._held: dict[str, Object] = {}

    def put(self, obj: Object) -> None:
        old = self._held.get(obj.metadata.name)
        event = Event("MODIFIED" if old else "ADDED", obj, "", old)
        self._held[obj.metadata.name] = obj
        self.reports.take(event, self.documents.take(event))

    def report(self, node: str = "n1", *, heard: float = WALL) -> None:
        """The node obeys its document, and says so."""
        node_report = NodeReport(heartbeat=datetime.fromtimestamp(heard, UTC), document=self.documents.of(node).hash)
        self.put(NodeQoS(metadata=Meta(name=node), status=NodeQoSStatus(node=node_report)))

    def succeeded(self) -> Leader:
        """By one that finds the objects, and knows nothing else."""
        fresh = Leader()
        fresh._held = self._held
        for obj in self._held.values():
            fresh.documents.take(Event("ADDED", obj, ""))
        for obj in self._held.values():
            fresh.reports.take(Event("ADDED", obj, ""), set())
        fresh.reports.take_over(self._policies())
        return fresh

    def applied(self, policy: MinimalReservationPolicy, wall: float = WALL) -> int:
        self.wall = wall
        self.reports.look()
        return self.reports.standing(policy).seen.applied

    def _policies(self) -> Iterable[MinimalReservationPolicy]:
        return [obj for obj in self._held.values() if isinstance(obj, MinimalReservationPolicy)]


def policy(
    name: str, *, generation: int = 1, units: dict[str, int] | None = None, applied: int = 0
) -> MinimalReservationPolicy:
    made = reservation(name, cpu="1", units=sum((units or {}).values()))
    status = replace(
        made.status,
        observed_generation=1,
        admitted_generation=generation,
        conditions=ADMITTED if units else (),
        witness=tuple(Witness(node=node, units=n) for node, n in (units or {}).items()),
        nodes=NodeCount(wanted=1, applied=applied),
    )
    return replace(made, metadata=replace(made.metadata, uid=f"u-{name}", generation=generation), status=status)


@pytest.fixture
def leader() -> Leader:
    made = Leader()
    made.put(NodeQoS(metadata=Meta(name="n1")))
    made.put(policy("db", applied=1))
    made.report()
    return made


def test_another_policy_takes_nothing_from_one_that_is_obeyed(leader: Leader) -> None:
    db, web = policy("db", applied=1), policy("web")
    leader.put(web)
    assert (leader.applied(db), leader.applied(web)) == (1, 0)
    leader.report()
    assert (leader.applied(db), leader.applied(web)) == (1, 1)


def test_a_policy_whose_units_move_is_still_obeyed(leader: Leader) -> None:
    leader.put(held := policy("held", units={"n1": 2}))
    assert leader.applied(held) == 0
    leader.report()
    assert leader.applied(held) == 1
    leader.put(moved := policy("held", units={"n1": 1, "n2": 1}))
    assert leader.applied(moved) == 1


def test_an_edit_has_to_be_obeyed_anew(leader: Leader) -> None:
    leader.put(edited := policy("db", generation=2))
    assert leader.applied(edited) == 0


def test_a_node_that_says_it_went_back_does_not_obey(leader: Leader) -> None:
    """An agent from an old copy: what it says of a policy counts for more than what it once obeyed."""
    leader.put(edited := policy("db", generation=2))
    leader.report()
    assert leader.applied(edited) == 1
    back = ReservationReport(source="MinimalReservationPolicy/default/db", generation=1)
    report = NodeReport(heartbeat=datetime.fromtimestamp(WALL, UTC), document="old", reservations=(back,))
    leader.put(NodeQoS(metadata=Meta(name="n1"), status=NodeQoSStatus(node=report)))
    assert leader.applied(edited) == 0


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(NEVER, 5)), st.sets(st.sampled_from("abcdefgh")))
def test_laggards_are_those_who_obey_nothing_as_late(obeyed: dict[str, int], nodes: set[str]) -> None:
    laggards = Laggards(nodes, obeyed)
    for epoch in (3, -1, 6, 0, 3):
        assert laggards.before(epoch) == {node for node in nodes if obeyed.get(node, NEVER) < epoch}


def test_one_that_was_made_again_has_to_be_obeyed_anew(leader: Leader) -> None:
    again = replace(policy("db"), metadata=replace(policy("db").metadata, uid="another", labels={"a": "b"}))
    leader.put(again)
    assert leader.applied(again) == 0


def test_a_fresh_leader_believes_what_the_last_one_saw_obeyed(leader: Leader) -> None:
    """While the node is busy with a change that came in between."""
    db, web = policy("db", applied=1), policy("web")
    leader.put(web)
    fresh = leader.succeeded()
    assert (fresh.applied(db), fresh.applied(web)) == (1, 0)
    fresh.report()
    assert (fresh.applied(db), fresh.applied(web)) == (1, 1)


@pytest.mark.parametrize(
    "predecessor",
    [
        pytest.param(policy("db", applied=0), id="nobody obeyed it"),
        pytest.param(policy("db", generation=2, applied=1), id="it was edited while nobody led"),
    ],
)
def test_a_fresh_leader_believes_nothing_else(leader: Leader, predecessor: MinimalReservationPolicy) -> None:
    leader.put(predecessor)
    leader.put(policy("web"))
    assert leader.succeeded().applied(predecessor) == 0


def test_a_fresh_leader_does_not_vouch_for_a_node_that_was_away(leader: Leader) -> None:
    leader.report(heard=WALL - 3600)
    leader.put(policy("web"))
    fresh = leader.succeeded()
    old = fresh._held["n1"]
    assert isinstance(old, NodeQoS)
    back = replace(old.status.node, heartbeat=datetime.fromtimestamp(WALL, UTC))
    fresh.put(replace(old, status=NodeQoSStatus(node=back)))
    assert fresh.applied(policy("db", applied=1)) == 0
