"""Any history of a fleet: no unit is sold twice, none is lost, and who came first keeps first."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from j10ce.model.resource import Resources
from tests.reservations.world import World, amount
from tests.soak.driver import Driver

ZONES = st.sampled_from(("east", "west"))
NAMES = st.sampled_from(("n1", "n2", "n3", "n4"))
NAMESPACES = st.sampled_from("ab")
SIZES = st.builds(amount, st.integers(1, 9), st.integers(1, 9))
SHAPES = st.builds(amount, st.integers(0, 4), st.integers(0, 4)).filter(any)


class AnyHistory(RuleBasedStateMachine):
    @initialize(percent=st.sampled_from((100, 100, 50)))
    def begin(self, percent: int) -> None:
        self.world = World(limit_percent=percent)

    # -- nodes

    @rule(name=NAMES, capacity=SIZES, zone=ZONES)
    def set_node(self, name: str, capacity: Resources, zone: str) -> None:
        self.world.set_machine(name, capacity=capacity, zone=zone)

    @precondition(lambda self: self.world.machines)
    @rule(data=st.data(), cordoned=st.booleans(), lost=st.booleans())
    def mark_node(self, data: st.DataObject, cordoned: bool, lost: bool) -> None:
        self.world.set_machine(self.node(data), cordoned=cordoned, lost=lost)

    @precondition(lambda self: self.world.machines)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        self.world.remove_machine(self.node(data))

    # -- policies

    @rule(
        namespace=NAMESPACES,
        name=st.sampled_from(("p", "q")),
        shape=SHAPES,
        units=st.integers(1, 5),
        zone=st.sampled_from(("", "", "east")),
        ttl=st.sampled_from((None, 10.0)),
    )
    def put_policy(self, namespace: str, name: str, shape: Resources, units: int, zone: str, ttl: float | None) -> None:
        self.world.put(namespace, name, shape, units, zone=zone, ttl=ttl)

    @precondition(lambda self: list(self.world.fleet))
    @rule(data=st.data())
    def remove_policy(self, data: st.DataObject) -> None:
        self.world.release(data.draw(st.sampled_from([p.source for p in self.world.fleet])))

    @rule(seconds=st.sampled_from((1.0, 10.0)))
    def pass_time(self, seconds: float) -> None:
        self.world.advance(seconds)

    # -- workloads

    @precondition(lambda self: self.world.machines and list(self.world.fleet) and len(self.world.running) < 12)
    @rule(data=st.data())
    def start_matching(self, data: st.DataObject) -> None:
        pledge = data.draw(st.sampled_from(list(self.world.fleet)))
        self.world.arrive(self.node(data), pledge.namespace, payer=pledge.source)

    @precondition(lambda self: self.world.machines and len(self.world.running) < 12)
    @rule(data=st.data(), namespace=NAMESPACES, floor=SHAPES)
    def start_floor(self, data: st.DataObject, namespace: str, floor: Resources) -> None:
        self.world.arrive(self.node(data), namespace, asked=floor)

    @precondition(lambda self: self.world.running)
    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        self.world.leave(data.draw(st.sampled_from(sorted(self.world.running))))

    # -- what always holds

    @invariant()
    def the_promises_hold(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    @rule(order=st.lists(st.integers(0, 9), max_size=4))
    def another_manager_agrees(self, order: list[int]) -> None:
        other = self.world.rebuilt(order)
        assert {p.source: other.standing(p.source) for p in other} == self.world.units()

    def node(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.world.machines)))


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("seed", range(8))
def test_long_histories_keep_every_promise(seed: int) -> None:
    driver = Driver(seed, limit_percent=100 if seed % 3 else 40)
    for _ in range(400):
        driver.step()
    assert driver.world.refusals, "a fleet that never refuses proves nothing"
