"""Policies reach the core as what they hold now; what they do not hold any more is taken back."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.model.kinds import Condition, MinimalReservationPolicy, Witness
from j10ce.policy.lifetime import revision_of
from j10ce.policy.profiles import builtin
from j10ce.scheduler.book.units import HeldPledge
from j10ce.scheduler.process.cluster.promises import Promises
from j10ce.testing.build import WALL, reservation


class Core:
    """Holds facts, as the core's plugins hear of them."""

    def __init__(self) -> None:
        self.facts: list[Any] = []

    def put_fact(self, fact: Any, now: float) -> None:
        self.facts = [f for f in self.facts if not _same(f, fact)] + [fact]

    def remove_fact(self, fact: Any, now: float) -> None:
        self.facts = [f for f in self.facts if not _same(f, fact)]

    @property
    def units(self) -> dict[str, int]:
        return {f.source: sum(f.units.values()) for f in self.facts if isinstance(f, HeldPledge)}


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, HeldPledge) and isinstance(other, HeldPledge):
        return one.source == other.source
    return one == other


@pytest.fixture
def core() -> Core:
    return Core()


def promises(core: Core, now: list[float]) -> Promises:
    return Promises(core, lambda: now[0])  # type: ignore[arg-type]


def admitted(policy: MinimalReservationPolicy, **units: int) -> MinimalReservationPolicy:
    generation = 1
    policy = replace(policy, metadata=replace(policy.metadata, uid="u-1", generation=generation))
    condition = Condition(type="Admitted", status="True", reason="Fits", observed_generation=generation)
    witness = tuple(Witness(node=node, units=count) for node, count in units.items())
    status = replace(
        policy.status,
        conditions=(condition,),
        witness=witness,
        admitted_generation=generation,
        observed_generation=generation,
    )
    return replace(policy, status=status)


def test_an_admitted_policy_holds_its_units_where_its_witness_says(core: Core) -> None:
    taking = promises(core, [WALL])
    taking.take(admitted(reservation("db", units=2, cpu="1"), a=1, b=1), gone=False)
    (pledge,) = core.facts
    assert dict(pledge.units) == {"a": 1, "b": 1}
    assert pledge.shape.cpu == 1000


def test_a_policy_that_nobody_has_decided_holds_nothing(core: Core) -> None:
    promises(core, [WALL]).take(reservation("db", units=2, cpu="1"), gone=False)
    assert core.facts == []


def test_a_deleted_policy_gives_its_units_back(core: Core) -> None:
    taking, policy = promises(core, [WALL]), admitted(reservation("db", units=2, cpu="1"), a=2)
    taking.take(policy, gone=False)
    assert sum(core.units.values()) == 2
    taking.take(policy, gone=True)
    assert core.units == {}


def test_profiles_come_and_go(core: Core) -> None:
    taking, profile = promises(core, [WALL]), builtin()[0]
    taking.take(profile, gone=False)
    assert core.facts == [profile]
    taking.take(profile, gone=True)
    assert core.facts == []


def test_a_revision_alone_changes_nothing_for_an_admitted_policy(core: Core) -> None:
    taking, policy = promises(core, [WALL]), admitted(reservation("db", units=2, cpu="1"), a=2)
    taking.take(policy, gone=False)
    before = list(core.facts)
    revision = revision_of(policy)
    taking.take(revision, gone=False)
    taking.take(revision, gone=True)
    assert core.facts == before
