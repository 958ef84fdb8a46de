"""Random histories of a small fleet, at full speed: anything may happen next, drawn by one generator."""

from __future__ import annotations

import random
from collections import Counter

from j10ce.model.resource import Resources
from tests.reservations.world import World, amount

NAMESPACES = ("a", "b", "c")
ZONES = ("east", "west")


class Driver:
    """One world; `step` does something to it. Small numbers, so that everything collides with everything."""

    def __init__(self, seed: int, *, limit_percent: int = 100) -> None:
        self.random = random.Random(seed)
        self.world = World(limit_percent=limit_percent)
        self.done: Counter[str] = Counter()
        self._name = 0

    def step(self) -> None:
        operation = self.random.choices(self.OPERATIONS, self.WEIGHTS)[0]
        missing = self.missing()
        operation(self)
        self.done[operation.__name__] += 1
        self.world.check()
        if operation not in self.LOSSES and not any(missing.values()) and not self.world.overdrawn():
            assert not any(self.missing().values()), "lost without a loss"
        if self.random.random() < 0.02:
            self.rebuild()

    def missing(self) -> dict[str, int]:
        return {key: s.missing for key, s in self.world.units().items()}

    def rebuild(self) -> None:
        """Another manager comes to the same, in whatever order it reads the objects."""
        order = [self.random.randrange(100) for _ in range(5)]
        other = self.world.rebuilt(order)
        assert {p.source: other.standing(p.source) for p in other} == self.world.units()

    # -- nodes

    def add_node(self) -> None:
        if len(self.world.machines) < 6:
            self._name += 1
            name = f"n{self.random.randrange(100):02}-{self._name}"
            self.world.set_machine(name, capacity=self.capacity(), zone=self.random.choice(ZONES))

    def remove_node(self) -> None:
        if len(self.world.machines) > 3:
            self.world.remove_machine(self.node())

    def resize_node(self) -> None:
        if self.world.machines:
            self.world.set_machine(self.node(), capacity=self.capacity())

    def cordon_node(self) -> None:
        if self.world.machines:
            name = self.node()
            self.world.set_machine(name, cordoned=not self.world.machines[name].cordoned)

    def lose_node(self) -> None:
        if self.world.machines:
            name = self.node()
            self.world.set_machine(name, lost=not self.world.machines[name].lost)

    def find_node(self) -> None:
        lost = sorted(name for name, m in self.world.machines.items() if m.lost)
        if lost:
            self.world.set_machine(self.random.choice(lost), lost=False)

    def relabel_node(self) -> None:
        if self.world.machines:
            self.world.set_machine(self.node(), zone=self.random.choice(ZONES))

    # -- policies

    def put_policy(self) -> None:
        ttl = self.random.choice((None, None, None, 20.0))
        zone = self.random.choice(("", "", "", *ZONES))
        namespace, name = self.random.choice(NAMESPACES), f"p{self.random.randrange(3)}"
        self.world.put(namespace, name, self.shape(), self.random.randint(1, 6), zone=zone, ttl=ttl)

    def remove_policy(self) -> None:
        if sources := [p.source for p in self.world.fleet]:
            self.world.release(self.random.choice(sources))

    def pass_time(self) -> None:
        self.world.advance(self.random.choice((1.0, 5.0, 30.0)))

    # -- workloads

    def start_matching(self) -> None:
        """Where a unit is held, or anywhere."""
        pledges = list(self.world.fleet)
        if not pledges or not self.world.machines or len(self.world.running) > 40:
            return
        pledge = self.random.choice(pledges)
        held = sorted(self.world.fleet.standing(pledge.source).unused)
        node = self.random.choice(held) if held and self.random.random() < 0.6 else self.node()
        zone = self.world.zones[pledge.source]
        if zone in ("", self.world.machines[node].zone):
            self.world.arrive(node, pledge.namespace, payer=pledge.source)

    def start_floor(self) -> None:
        if self.world.machines and len(self.world.running) < 40:
            self.world.arrive(self.node(), self.random.choice(NAMESPACES), asked=self.shape())

    def stop_workload(self) -> None:
        if self.world.running:
            self.world.leave(self.random.choice(sorted(self.world.running)))

    # -- draws

    def node(self) -> str:
        return self.random.choice(sorted(self.world.machines))

    def capacity(self) -> Resources:
        return amount(self.random.randint(2, 12), self.random.randint(2, 12))

    def shape(self) -> Resources:
        cpu, memory = self.random.choice(((1, 0), (0, 1), (1, 1), (2, 1), (1, 3), (3, 2), (4, 4), (5, 1)))
        return amount(cpu, memory)

    OPERATIONS = (
        add_node,
        remove_node,
        resize_node,
        cordon_node,
        lose_node,
        find_node,
        relabel_node,
        put_policy,
        remove_policy,
        pass_time,
        start_matching,
        start_floor,
        stop_workload,
    )
    LOSSES = (remove_node, resize_node, lose_node, relabel_node, stop_workload)  # a cordoned node takes no unit back
    WEIGHTS = (6, 1, 4, 3, 2, 5, 1, 20, 4, 3, 25, 8, 18)
