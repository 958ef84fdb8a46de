"""A namespace that reserves as much of the fleet as it may keeps what it has, and gets no floor more."""

from __future__ import annotations

from msgspec.structs import replace

from j10ce.model.kinds import Condition, Meta, MinimalReservationPolicy, NodeQoS
from j10ce.model.resource import NOTHING
from j10ce.policy.document.document import NodeDocument, render
from j10ce.policy.entitlement.resolve import resolve
from j10ce.testing.build import WALL, node, reservation, resources, workload

FACTS = node(8, "16Gi", name="n1")
HERE = NodeQoS(metadata=Meta(name="n1"))


def limited(policy: MinimalReservationPolicy) -> MinimalReservationPolicy:
    condition = Condition(type="Limited", status="True", reason="NamespaceLimit", message="cpu 3 of 3")
    return replace(policy, status=replace(policy.status, conditions=(*policy.status.conditions, condition)))


def document(policy: MinimalReservationPolicy) -> NodeDocument:
    return render(HERE, policies=[policy])


def test_what_is_granted_stays_and_nothing_is_added() -> None:
    db = reservation("db", cpu="1")
    first = resolve([workload("a")], document(db), FACTS, wall=WALL)
    both = [workload("a"), workload("b", since=WALL + 1)]
    later = resolve(both, document(limited(db)), FACTS, wall=WALL, before=first.ledger)
    assert later.entitlements["workload/default/a"].floor == resources("1")
    b = later.entitlements["workload/default/b"]
    assert b.floor == NOTHING
    assert tuple(map(str, b.notes)) == (
        "Unprotected: MinimalReservationPolicy/default/db asks for cpu 1: "
        "namespace default reserves as much of the fleet as it may, and no unit is free here",
    )


def test_units_that_are_held_can_be_used() -> None:
    db = limited(reservation("db", cpu="1", units=1))
    resolution = resolve([workload("a"), workload("b", since=WALL + 1)], document(db), FACTS, wall=WALL)
    floors = [resolution.entitlements[f"workload/default/{name}"].floor for name in "ab"]
    assert floors == [resources("1"), NOTHING]


def test_other_namespaces_are_not_concerned() -> None:
    db = limited(reservation("db", cpu="1"))
    other = reservation("web", namespace="shop", cpu="1")
    resolution = resolve([workload("a", namespace="shop")], render(HERE, policies=[db, other]), FACTS, wall=WALL)
    assert resolution.entitlements["workload/shop/a"].floor == resources("1")


def test_the_numbers_of_the_limit_wake_no_agent() -> None:
    db = limited(reservation("db", cpu="1"))
    moved = replace(db, status=replace(db.status, conditions=(replace(db.status.conditions[0], message="cpu 4 of 3"),)))
    assert document(db).hash == document(moved).hash
    assert document(db).hash != document(reservation("db", cpu="1")).hash
