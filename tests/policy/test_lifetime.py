"""When something ends and which generation counts: whoever asks gets the answer of `policy.lifetime`."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.agent.ring.holds import held, live
from j10ce.manager.api.place_policy import expires
from j10ce.manager.documents.documents import Documents
from j10ce.manager.documents.view import View
from j10ce.manager.keepers import expiry
from j10ce.manager.policies.reports import RolloutStanding
from j10ce.manager.policies.reservations import Reservations
from j10ce.manager.policies.status import Basis, judged
from j10ce.model.kinds import Condition, MinimalReservationPolicy, NodeQoS, PolicyRevision, Witness
from j10ce.model.knob import workload as target_of
from j10ce.model.stored import Event
from j10ce.plan.hold import in_force as held_settings
from j10ce.plan.rights import Rights
from j10ce.policy.document.document import NodeDocument, reference, render
from j10ce.policy.document.rollout import NodesSeen
from j10ce.policy.entitlement.resolve import resolve
from j10ce.policy.lifetime import at, ends, in_force, over, revision_of
from j10ce.scheduler.book.pledged import pledge_of
from j10ce.scheduler.cluster import assemble, row
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL, hold, node, reservation, snapshot, workload
from tests.hearing import Roster
from tests.reservations.objects import node as node_object

TIMES = st.integers(-1, 4).map(lambda n: WALL + n)  # before it was made, while it lives, at its end and after
N1 = node_object("n1")
NOBODY = RolloutStanding(1, 0, 0, {}, NodesSeen())  # no node has said anything yet


@st.composite
def policies(draw: st.DrawFn) -> tuple[MinimalReservationPolicy, list[PolicyRevision]]:
    """A policy in its third generation at most, whatever the fleet has made of it, and the history that is left."""
    generation = draw(st.integers(1, 3))
    every = [_generation(n, draw(st.sampled_from(["", "1s", "2s"])), draw(st.integers(0, 2))) for n in (1, 2, 3)]
    policy = every[generation - 1]
    if draw(st.booleans()):
        held = draw(st.integers(0, generation))
        verdict = Condition(type="Admitted", status="True" if held == generation else "False", reason="Any")
        units = draw(st.integers(0, 2)) if held else 0
        status = replace(policy.status, conditions=(verdict,), admitted_generation=held)
        policy = replace(policy, status=replace(status, witness=(Witness(node="n1", units=units),) if units else ()))
    if draw(st.integers(0, 9)) == 0:
        policy = replace(policy, metadata=replace(policy.metadata, creation_timestamp=UNSET))  # it is not stored yet
    kept = draw(st.sets(st.integers(1, 3)))
    return policy, [revision_of(p) for n, p in enumerate(every, 1) if n in kept]


def _generation(n: int, ttl: str, units: int) -> MinimalReservationPolicy:
    made = reservation("db", labels={"app": "db"}, cpu=f"{n}00m", units=units, ttl=ttl)
    return replace(made, metadata=replace(made.metadata, generation=n, uid="u1"))


@settings(max_examples=300, deadline=None)
@given(policies(), TIMES)
def test_everyone_ends_a_policy_at_the_same_moment(
    made: tuple[MinimalReservationPolicy, list[PolicyRevision]], wall: float
) -> None:
    policy, revisions = made
    fleet = Reservations(Roster(), limit_percent=100)
    decision = fleet.decide([policy], [N1], wall, revisions)[reference(policy)]
    here = NodeDocument(node="n1", policies=(policy,), units={})
    floors = resolve([workload("db", labels={"app": "db"})], here, node(), wall=wall).entitlements.values()
    store = MemoryStore(lambda: wall)
    pledge = pledge_of(policy, _view(store, policy, revisions).documents.revisions(policy), wall)
    until = expires(policy)
    answers = {
        "the node": not any(e.floor.cpu for e in floors),
        "the ledger": decision.admitted.reason == "Expired",
        "the status": judged(policy, Basis(NOBODY), decision, wall).phase == "Expired",
        "placement": not assemble([row(N1)], [policy], {"n1": 0.0}, wall=wall).policies,
        "the placement's owner": until is not UNSET and until.timestamp() <= wall,
        "the keeper": _ended(policy, wall),
    }
    assert answers == dict.fromkeys(answers, over(policy, wall))
    assert pledge is None or not over(policy, wall), "the extender"
    assert pledge is None or pledge.until == ends(policy)


@settings(max_examples=300, deadline=None)
@given(policies())
def test_everyone_obeys_the_same_generation(made: tuple[MinimalReservationPolicy, list[PolicyRevision]]) -> None:
    policy, revisions = made
    force = in_force(policy, revisions)
    obeyed = force or policy  # what the fleet refused altogether is a wish that agents grant as they can
    (rendered,) = render(NodeQoS(metadata=N1.metadata), policies=[policy], revisions=revisions).policies
    documents = _view(MemoryStore(lambda: WALL), policy, revisions).documents
    assert (rendered.metadata.generation, rendered.spec.minimum) == (obeyed.metadata.generation, obeyed.spec.minimum)
    assert documents.in_force(policy) == (obeyed.metadata.generation, None)
    pledge = pledge_of(policy, documents.revisions(policy), WALL)
    if pledge is not None:
        assert force is not None
        assert pledge.shape.cpu == force.metadata.generation * 100
    if force is not None and force.metadata.generation != policy.metadata.generation:
        before = at(policy, force.metadata.generation, revisions)
        assert before is not None
        assert replace(force.spec, ttl=UNSET, lending=before.spec.lending) == replace(before.spec, ttl=UNSET)
        assert force.spec.ttl == policy.spec.ttl


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 3).map(lambda n: WALL + n), TIMES)
def test_everyone_ends_a_hold_at_the_same_moment(until: float, wall: float) -> None:
    target = target_of("default", "db")
    freeze = hold(target, "cpu.weight", expires=until)
    w = workload("db")
    snap = snapshot(workloads=[w], wall=wall)
    every = held([freeze], until - 1)  # as the agent read them while it lasted
    assert len(every) == 1
    answers = {
        "the agent": not live([freeze], wall),
        "the arbiter": not held_settings(every, snap, Rights.of(snap)).holds,
        "the status": any(c.type == "Expired" for c in expiry.hold_status(freeze, wall).conditions),
        "the keeper": _ended(freeze, wall),
    }
    assert answers == dict.fromkeys(answers, over(freeze, wall))


def _ended(obj: expiry.Temporary, wall: float) -> bool:
    """Whether the keeper counts the seconds since its end."""
    times = iter((0.0, 0.0, 1.0, 1.0))
    watched = expiry.Overdue(lambda: next(times))
    watched.over_s(obj, wall)
    return watched.over_s(obj, wall) > 0


def _view(store: MemoryStore, policy: MinimalReservationPolicy, revisions: list[PolicyRevision]) -> View:
    view = View(store)
    documents: Documents = view.documents
    for obj in (*revisions, policy):
        documents.take(Event("ADDED", obj, "1"))
    return view
