"""Invariants of resolve: nothing is oversold, and nobody loses a floor because something was added."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.model.kinds import MinimalReservationPolicy
from j10ce.model.resource import NOTHING, Resources
from j10ce.model.workload import Workload
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.entitlement.ledger import Ledger, guaranteeable
from j10ce.policy.entitlement.resolve import Resolution, admit, resolve
from j10ce.policy.profiles import TRUSTED_LABEL, builtin
from j10ce.testing.build import WALL, node, reservation, workload

times = st.integers(0, 20).map(lambda n: WALL + n)
LATER = WALL + 100
NODE = node(cpus=4, memory="8Gi")
APPS = ("a", "b", "c")


@st.composite
def workloads(draw: st.DrawFn) -> list[Workload]:
    names = draw(st.lists(st.sampled_from([f"w{n}" for n in range(8)]), unique=True, max_size=6))
    return [
        workload(
            name,
            labels={"app": draw(st.sampled_from(APPS))},
            profile=draw(st.sampled_from(["", "ls", "be", "lsr", "guaranteed-pro", "lse"])),
            cpu=draw(st.sampled_from([0, "500m", 2])),
            memory=draw(st.sampled_from([0, "1Gi", "5Gi"])),
            min_cpu=draw(st.sampled_from([0, 0, "300m", 3])),
            namespace_labels=draw(st.sampled_from([{}, {TRUSTED_LABEL: "true"}])),
            since=draw(times),
        )
        for name in names
    ]


@st.composite
def policy(draw: st.DrawFn, name: str, created: float | None = None) -> MinimalReservationPolicy:
    return reservation(
        name,
        labels=draw(st.sampled_from([{}, *({"app": a} for a in APPS)])),
        units=draw(st.integers(0, 3)),
        cpu=draw(st.sampled_from([0, "100m", 1, "1500m", 5])),
        memory=draw(st.sampled_from([0, "512Mi", "3Gi", "20Gi"])),
        created=draw(times) if created is None else created,
    )


policies = st.integers(0, 4).flatmap(lambda n: st.tuples(*(policy(f"p{i}") for i in range(n))))
added = st.sampled_from(["a", "p", "z"])  # sorts before, among and after the others


def run(
    ws: Sequence[Workload], ps: Sequence[MinimalReservationPolicy], before: Ledger | None = None, on: object = NODE
) -> Resolution:
    document = NodeDocument(node="n1", profiles=builtin(), policies=tuple(ps))
    return resolve(ws, document, on, wall=WALL + 200, before=before)  # type: ignore[arg-type]


def assert_nobody_lost(earlier: Resolution, later: Resolution) -> None:
    for target, e in earlier.entitlements.items():
        assert e.floor.fits(later.entitlements[target].floor), target


@given(workloads(), policies)
def test_the_floors_never_exceed_what_may_be_promised(
    ws: list[Workload], ps: Sequence[MinimalReservationPolicy]
) -> None:
    result = run(ws, ps)
    assert result.ledger.promised.fits(guaranteeable(NODE.capacity))
    assert floors(result).fits(result.ledger.promised)


def floors(result: Resolution) -> Resources:
    total = NOTHING
    for e in result.entitlements.values():
        total = total.plus(e.floor)
    return total


@given(workloads(), policies, st.data())
def test_adding_a_policy_never_lowers_a_floor(
    ws: list[Workload], ps: Sequence[MinimalReservationPolicy], data: st.DataObject
) -> None:
    earlier = run(ws, ps)
    newcomer = data.draw(policy(data.draw(added), LATER))
    assert_nobody_lost(earlier, run(ws, [newcomer, *ps]))


@given(workloads(), policies, st.data())
def test_with_the_ledger_in_force_not_even_an_older_policy_lowers_a_floor(
    ws: list[Workload], ps: Sequence[MinimalReservationPolicy], data: st.DataObject
) -> None:
    earlier = run(ws, ps)
    newcomer = data.draw(policy(data.draw(added)))
    later = run(ws, [newcomer, *ps], before=earlier.ledger)
    assert_nobody_lost(earlier, later)
    assert later.ledger.promised.fits(guaranteeable(NODE.capacity))


@given(workloads(), policies, st.data())
def test_a_workload_that_arrives_never_lowers_a_floor(
    ws: list[Workload], ps: Sequence[MinimalReservationPolicy], data: st.DataObject
) -> None:
    earlier = run(ws, ps)
    newcomer = workload("0new", labels={"app": data.draw(st.sampled_from(APPS))}, min_cpu=1, since=LATER)
    assert_nobody_lost(earlier, run([newcomer, *ws], ps))


@given(workloads(), policies, st.data())
def test_an_arrival_decided_alone_is_decided_as_among_all(
    ws: list[Workload], ps: Sequence[MinimalReservationPolicy], data: st.DataObject
) -> None:
    labels, asks = {"app": data.draw(st.sampled_from(APPS))}, data.draw(st.sampled_from([0, 1, 3]))
    newcomer = workload("0new", labels=labels, min_cpu=asks, since=LATER)
    document = NodeDocument(node="n1", profiles=builtin(), policies=tuple(ps))
    alone = admit([newcomer], document, NODE, wall=WALL + 200, before=run(ws, ps))
    among = run([newcomer, *ws], ps)
    assert alone.entitlements == among.entitlements
    assert set(alone.ledger) == set(among.ledger)
    back = admit([newcomer], document, NODE, wall=WALL + 200, before=alone)
    assert back.entitlements == alone.entitlements


@given(workloads(), policies, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(
    ws: list[Workload], ps: Sequence[MinimalReservationPolicy], random: object
) -> None:
    mixed = list(ws)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    straight, shuffled = run(ws, ps), run(mixed, ps[::-1])
    assert straight.entitlements == shuffled.entitlements
    assert set(straight.ledger) == set(shuffled.ledger)


@given(workloads(), policies, st.integers(1, 4))
def test_a_shrunken_machine_is_not_oversold(
    ws: list[Workload], ps: Sequence[MinimalReservationPolicy], cpus: int
) -> None:
    small = node(cpus=cpus, memory=f"{cpus}Gi")
    result = run(ws, ps, before=run(ws, ps).ledger, on=small)
    assert floors(result).fits(guaranteeable(small.capacity))


@given(workloads(), policies)
def test_who_gets_less_than_claimed_is_reported(ws: list[Workload], ps: Sequence[MinimalReservationPolicy]) -> None:
    result = run(ws, ps)
    for w in ws:
        e = result.entitlements[w.target]
        assert w.minimum.fits(e.floor) or any(
            n.kind == "Unprotected" and n.source.startswith("Workload/") for n in e.notes
        )


@settings(max_examples=30)
@given(workloads(), policies)
def test_a_floor_has_a_source_and_a_source_a_floor(ws: list[Workload], ps: Sequence[MinimalReservationPolicy]) -> None:
    for e in run(ws, ps).entitlements.values():
        sourced = {s.field.removeprefix("floor.") for s in e.sources if s.field.startswith("floor.")}
        assert sourced == {name for name, _ in e.floor.named()}
        assert e.chosen or e.floor == NOTHING


def lines(ledger: Ledger) -> list[object]:
    return sorted(ledger)


@given(workloads(), policies, st.data())
def test_resolving_again_changes_nothing(
    ws: list[Workload], ps: Sequence[MinimalReservationPolicy], data: st.DataObject
) -> None:
    """Also after something was added, taken away or edited meanwhile: the first answer is the last one."""
    before = run(ws, ps).ledger
    left = [w for w in ws if data.draw(st.booleans())]
    kept = [data.draw(st.sampled_from([p, data.draw(policy(p.metadata.name))])) for p in ps if data.draw(st.booleans())]
    once = run(left, kept, before)
    again = run(left, kept, once.ledger)
    assert lines(again.ledger) == lines(once.ledger)
    assert {t: replace(e, notes=()) for t, e in again.entitlements.items()} == {
        t: replace(e, notes=()) for t, e in once.entitlements.items()
    }
