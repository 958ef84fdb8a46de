"""Units of a policy: held before anyone asks, stood on by those they are for, and never counted twice."""

from __future__ import annotations

from collections.abc import Sequence

from j10ce.model.kinds import MinimalReservationPolicy, Tier
from j10ce.model.resource import NOTHING, Resources
from j10ce.model.workload import Workload
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.entitlement.ledger import Ledger, Line
from j10ce.policy.entitlement.resolve import Resolution, admit, resolve
from j10ce.policy.profiles import builtin
from j10ce.testing.build import WALL, node, reservation, workload

NODE = node(cpus=4, memory="8Gi")
LATER = WALL + 100


def document(ps: Sequence[MinimalReservationPolicy]) -> NodeDocument:
    return NodeDocument(node="n1", profiles=builtin(), policies=tuple(ps))


def run(ws: Sequence[Workload], ps: Sequence[MinimalReservationPolicy], before: Ledger | None = None) -> Resolution:
    return resolve(ws, document(ps), NODE, wall=WALL + 200, before=before)


def test_who_a_unit_is_held_for_may_ask_for_more_than_the_unit() -> None:
    """A unit of 4 GiB is held and 3.5 are free: 5 GiB fit where the unit is stood on, and only there."""
    held = reservation("p", labels={"app": "web"}, units=1, cpu=1, memory="4Gi")
    web = workload("web", labels={"app": "web"}, profile="ls", min_memory="5Gi", since=LATER)
    before = run([], [held])
    for resolution in (
        run([web], [held], before.ledger),
        admit([web], document([held]), NODE, wall=WALL + 200, before=before),
    ):
        assert resolution.entitlements[web.target].floor == Resources(cpu=1000, memory=5 << 30)  # type: ignore[arg-type]
        assert resolution.entitlements[web.target].notes == ()
        assert resolution.ledger.promised.memory == 5 << 30
    other = workload("other", profile="ls", min_memory="5Gi", since=LATER)
    assert run([other], [held], before.ledger).entitlements[other.target].floor == NOTHING


def test_the_unit_of_a_policy_that_pays_now_is_not_held_beside_its_workload() -> None:
    """Two policies match; the one that paid is deleted, and the other's unit is the one stood on from then on."""
    paid = reservation("a", labels={"app": "web"}, units=1, cpu=2)
    other = reservation("b", labels={"app": "web"}, units=1, cpu=1)
    web = workload("web", labels={"app": "web"}, profile="ls", since=LATER)
    before = run([web], [paid, other], run([], [paid, other]).ledger)
    assert before.ledger.promised.cpu == 3000
    assert run([web], [other], before.ledger).ledger.promised.cpu == 1000


def test_a_unit_is_held_again_when_its_workload_moves_to_the_unit_of_a_larger_policy() -> None:
    small = reservation("a", labels={"app": "web"}, units=1, cpu=1)
    large = reservation("b", labels={"app": "web"}, units=1, cpu=2, created=LATER)
    web = workload("web", labels={"app": "web"}, profile="ls", since=WALL)
    before = run([web], [small])
    assert before.ledger.promised.cpu == 1000
    assert run([web], [small, large], before.ledger).ledger.promised.cpu == 3000


def test_who_stands_on_a_unit_keeps_it_though_others_of_the_policy_came_first() -> None:
    policy = reservation("p", labels={"app": "web"}, units=1, cpu=1)
    first, second = (workload(n, labels={"app": "web"}, profile="ls", since=WALL) for n in ("first", "second"))
    source, one_cpu = "MinimalReservationPolicy/default/p", Resources(cpu=1000)  # type: ignore[arg-type]
    lines = [Line(w.target, one_cpu, Tier.SENSITIVE, source, n) for n, w in enumerate((first, second))]
    after = run([first, second], [policy], Ledger(NODE.capacity, lines)).ledger
    assert [line.units for w in (first, second) if (line := after.get(w.target))] == [0, 1]
