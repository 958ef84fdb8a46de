"""What holds for every fleet and every workload."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from j10ce.model.kinds import MinimalReservationPolicy, NodeQoS
from j10ce.scheduler.place.demand import Request
from j10ce.scheduler.place.fit import FILTERS
from j10ce.scheduler.place.place import PlaceDecision, place
from j10ce.testing.build import WALL, reservation
from tests.scheduler.place.fleet import asked, fleet, node, witnessed

names = st.sampled_from([f"n{n}" for n in range(6)])
nodes = st.lists(
    st.builds(
        lambda name, cpu, reserved, cordoned, silent, lacking: node(
            name,
            cpu=str(cpu),
            memory=f"{cpu * 2}Gi",
            reserved={"cpu": f"{cpu * reserved * 10}m", "memory": f"{reserved * cpu}Mi"},
            cordoned=cordoned,
            heard=WALL - silent,
            lacking=("memory.min", "memory.low") if lacking else (),
        ),
        names,
        st.integers(1, 64),
        st.integers(0, 100),
        st.booleans(),
        st.sampled_from([0, 30, 60]),
        st.booleans(),
    ),
    max_size=6,
    unique_by=lambda n: n.metadata.name,
)
units = st.dictionaries(names, st.integers(1, 3), min_size=1, max_size=3)
policies = st.lists(
    st.builds(
        lambda name, cpu, app, placed: witnessed(
            reservation(name, labels={"app": app}, cpu=str(cpu), memory=f"{cpu}Gi", units=sum(placed.values())),
            **placed,
        ),
        st.sampled_from(["db", "web", "queue"]),
        st.integers(1, 4),
        st.sampled_from(["db", "web"]),
        units,
    ),
    max_size=3,
    unique_by=lambda p: p.metadata.name,
)
requests = st.builds(
    lambda cpu, memory, app: asked(cpu=f"{cpu}m", memory=f"{memory}Mi", labels={"app": app}),
    st.integers(0, 20_000),
    st.integers(0, 40_000),
    st.sampled_from(["db", "web", "other"]),
)


def decided(wanted: Request, at: Sequence[NodeQoS], held: Sequence[MinimalReservationPolicy]) -> PlaceDecision:
    return place(wanted, fleet(*at, policies=tuple(held)))


@given(requests, nodes, policies)
def test_a_node_is_ranked_if_and_only_if_it_passes_every_filter(
    wanted: Request, at: list[NodeQoS], held: list[MinimalReservationPolicy]
) -> None:
    decision = decided(wanted, at, held)
    for n in range(len(decision.cluster.names)):
        passes = all(f.filter(decision.demand, decision.cluster)[n] for f in FILTERS)
        assert passes == (n in decision.ranking) == decision.verdict(n).fits
    if decision.ranking:
        n = decision.ranking[0]
        after = decision.cluster.promised[n] + decision.demand.need[n]
        assert all((after <= decision.cluster.room[n]) | (decision.demand.need[n] == 0))


@given(requests, nodes, policies, st.randoms(use_true_random=False))
def test_the_order_of_nodes_and_policies_does_not_matter(
    wanted: Request, at: list[NodeQoS], held: list[MinimalReservationPolicy], random: object
) -> None:
    shuffled, policies_too = list(at), list(held)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    random.shuffle(policies_too)  # type: ignore[attr-defined]
    assert decided(wanted, at, held).verdicts(99) == decided(wanted, shuffled, policies_too).verdicts(99)


@given(requests, nodes, policies, names, st.integers(1, 64))
def test_a_node_more_never_makes_a_workload_homeless(
    wanted: Request, at: list[NodeQoS], held: list[MinimalReservationPolicy], name: str, cpu: int
) -> None:
    before = decided(wanted, at, held)
    grown = [*at, node(f"{name}-more", cpu=str(cpu), memory=f"{cpu}Gi")]
    fits = {before.cluster.names[n] for n in before.ranking}
    after = decided(wanted, grown, held)
    assert fits <= {after.cluster.names[n] for n in after.ranking}


@given(requests, nodes, policies)
def test_a_larger_node_holds_what_a_smaller_one_holds(
    wanted: Request, at: list[NodeQoS], held: list[MinimalReservationPolicy]
) -> None:
    decision = decided(wanted, at, held)
    cluster = decision.cluster._replace(room=decision.cluster.room * 2, capacity=decision.cluster.capacity * 2)
    assert set(decision.ranking) <= set(place(wanted, cluster).ranking)


@given(requests, nodes, policies)
def test_points_add_up_to_the_score_and_rank_the_nodes(
    wanted: Request, at: list[NodeQoS], held: list[MinimalReservationPolicy]
) -> None:
    decision = decided(wanted, at, held)
    fitting = [v for v in decision.verdicts(99) if v.fits]
    for verdict in fitting:
        assert abs(sum(s.points for s in verdict.scores) - verdict.score) < 0.01
        assert all(0 <= s.points <= s.of + 1e-9 for s in verdict.scores)
    assert [v.score for v in fitting] == sorted((v.score for v in fitting), reverse=True)
    assert all(v.reason for v in decision.verdicts(99) if not v.fits)
    assert np.isfinite(decision.totals).all()
