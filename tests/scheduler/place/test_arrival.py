"""A placed workload comes to its host: it stands on what was held for it, and keeps its floor when the hold ends."""

from __future__ import annotations

from msgspec.structs import replace

from j10ce.agent.ring.objects import from_object, to_object
from j10ce.manager.api.place_policy import Terms, policy_for
from j10ce.model.kinds import MinimalReservationPolicy
from j10ce.policy.document.document import NodeDocument, reference
from j10ce.policy.entitlement.resolve import Resolution, resolve
from j10ce.policy.profiles import builtin
from j10ce.policy.validation.validate import validate
from j10ce.scheduler.place.demand import request
from j10ce.scheduler.place.place import place
from j10ce.testing.build import WALL, meta
from j10ce.testing.build import node as machine
from tests.scheduler.place.fleet import fleet, node, workload

HERE = machine(cpus=4, memory="8Gi")


def held(name: str = "web") -> MinimalReservationPolicy:
    """What `place` writes for a workload of 2 CPUs, as it comes back from the store."""
    decision = place(request(workload(name, cpu="2"), builtin()), fleet(node("n1")))
    policy = policy_for(decision, decision.ranking[0], Terms().ttl)
    assert validate(policy) == []
    return replace(policy, metadata=meta(policy.metadata.name, "default"))


def resolved(*names: str, cpu: str = "2", wall: float = WALL, before: Resolution | None = None) -> Resolution:
    document = NodeDocument(node="n1", profiles=builtin(), policies=(held(),))
    workloads = [from_object(workload(name, cpu=cpu), HERE, since=WALL) for name in names]
    return resolve(workloads, document, HERE, wall=wall, before=before.ledger if before else None)


def test_it_stands_on_the_unit_that_was_held_for_it() -> None:
    waiting = resolved()
    assert waiting.ledger.promised.cpu == 2000
    arrived = resolved("web", before=waiting)
    line = arrived.ledger.get("workload/default/web")
    assert line is not None
    assert (line.charged, line.units, arrived.ledger.promised.cpu) == (reference(held()), 1, 2000)


def test_nobody_else_gets_it() -> None:
    late = resolved("other", before=resolved())
    entitled = late.entitlements["workload/default/other"]
    assert entitled.floor.cpu == 0
    assert str(entitled.notes[0]).startswith("Unprotected: Workload/default/other asks for cpu 2")


def test_its_own_minimum_outlives_the_hold() -> None:
    after = resolved("web", wall=WALL + 601, before=resolved("web"))
    assert after.entitlements["workload/default/web"].floor.cpu == 2000


def test_the_label_of_its_name_cannot_be_forged_and_is_not_shown() -> None:
    forged = workload("thief", labels={"j10ce.io/workload": "web"})
    inside = from_object(forged, HERE)
    assert inside.labels["j10ce.io/workload"] == "thief"
    assert to_object(inside).metadata.labels == {}
