"""A cluster as its API server has it, and a driver that carries out what a scheduler decides: late, or not at all.

It keeps its own accounts, as slowly and plainly as can be, and trusts none of the scheduler's.
"""

from __future__ import annotations

import random
from collections import Counter

from j10ce.model.kinds import Selector
from j10ce.model.resource import Resources
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.book.units import HeldPledge
from j10ce.scheduler.cycle.decisions import Bind, Decision, Defer, Evict, Nominate
from j10ce.scheduler.cycle.profile import Profile, profile
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.nodes.affinity import NodeAffinity
from j10ce.scheduler.plugins.nodes.unschedulable import NodeUnschedulable
from j10ce.scheduler.plugins.queueing.preemption import DefaultPreemption
from j10ce.scheduler.plugins.queueing.priority import PrioritySort
from j10ce.scheduler.plugins.resources.balanced import BalancedAllocation
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit
from j10ce.scheduler.plugins.resources.reserved import Reservation

NAME = "ours"
ZONES = ("a", "b")
APPS = ("other", "web", "db")
MOST_NODES, MOST_PODS = 8, 60
QUIET_S = 700.0  # longer than anything waits without an event
SHAPES = tuple(
    Shape((("cpu", cpu), ("memory", memory)), (cpu, memory), node_selector=(("zone", zone),) if zone else ())
    for cpu, memory in ((100, 300), (300, 100), (700, 700), (1500, 200))
    for zone in ("", "a")
)


class Moody:
    """A plugin that fails now and then, and turns pods down at the last moment."""

    name = "Moody"

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.held: Counter[str] = Counter()

    def reserve(self, pod: PodFacts, node: str, now: float, /) -> None:
        if self._chance.random() < 0.02:
            raise RuntimeError("not today")
        self.held[pod.uid] = 1

    def unreserve(self, pod: PodFacts, node: str, now: float, /) -> None:
        self.held.pop(pod.uid, None)


class World:
    def __init__(self, seed: int, *, moody: bool = False, reserving: bool = False) -> None:
        self.chance = random.Random(seed)
        self.now = 0.0
        self.nodes: dict[str, NodeFacts] = {}
        self.pods: dict[str, PodFacts] = {}
        self.bindings: dict[str, str] = {}  # decided, and not done yet: uid → node
        self.going: set[str] = set()  # uids whose eviction was asked for
        self.done: Counter[str] = Counter()
        self._serial = 0
        self.pledges: dict[str, HeldPledge] = {}
        self._reserving = reserving
        self.scheduler = Scheduler([self._profile(moody)])

    def _profile(self, moody: bool) -> Profile:
        plugins = [
            PrioritySort(), NodeUnschedulable(), NodeAffinity(), NodeResourcesFit(), BalancedAllocation(),
            Reservation(), DefaultPreemption(),
        ]  # fmt: skip
        return profile(NAME, [*plugins, *([Moody(self.chance)] if moody else [])])

    # -- what happens

    def anything(self) -> None:
        operations = (
            (8, self.new_pod), (4, self.delete_pod), (1, self.new_node), (1, self.lose_node), (1, self.change_node),
            (8, self.bind), (1, self.refuse_binding), (3, self.evict), (1, self.refuse_eviction), (2, self.end_pod),
            (int(self._reserving), self.change_pledge),
        )  # fmt: skip
        weights = [weight for weight, _ in operations]
        operation = self.chance.choices([o for _, o in operations], weights)[0]
        operation()
        self.done[operation.__name__] += 1
        self.now += self.chance.choice((0.0, 0.1, 1.0, 3.0))
        if self.chance.random() < 0.7:
            self.step()

    def step(self) -> None:
        for decision in self.scheduler.step(self.now):
            self.heed(decision)
        self.check()

    def new_pod(self) -> None:
        if len(self.pods) < MOST_PODS:
            for _ in range(self.chance.choice((1, 1, 4))):
                self._serial += 1
                shape, priority = self.chance.choice(SHAPES), self.chance.choice((0, 0, 5, 10))
                labels = {"app": self.chance.choice(APPS)}
                self.put(PodFacts(f"u{self._serial}", "d", f"p{self._serial}", shape, labels, scheduler=NAME,
                                  priority=priority, created=self.now))  # fmt: skip

    def delete_pod(self) -> None:
        if self.pods:
            self.remove(self.chance.choice(sorted(self.pods)))

    def end_pod(self) -> None:
        if running := sorted(uid for uid, pod in self.pods.items() if pod.node):
            uid = self.chance.choice(running)
            self.put(self.pods[uid]._replace(phase="Succeeded"))

    def new_node(self) -> None:
        if len(self.nodes) < MOST_NODES:
            self.set_node(f"n{self.chance.randrange(12)}")

    def change_node(self) -> None:
        if self.nodes:
            self.set_node(self.chance.choice(sorted(self.nodes)))

    def set_node(self, name: str) -> None:
        amounts = {"cpu": self.chance.choice((1000, 2500)), "memory": self.chance.choice((1000, 2500)), "pods": 8}
        cordoned = self.chance.random() < 0.2
        self.nodes[name] = NodeFacts(name, {"zone": self.chance.choice(ZONES)}, amounts, (), cordoned)
        self.scheduler.put_node(self.nodes[name], self.now)

    def change_pledge(self) -> None:
        app = self.chance.choice(APPS[1:])
        old = self.pledges.pop(app, None)
        if old is not None and self.chance.random() < 0.4:
            self.scheduler.remove_fact(old, self.now)
            return
        shape = Resources._make((self.chance.choice((100, 700)), self.chance.choice((300, 700)), 0, 0, 0))
        units = {name: self.chance.choice((1, 2)) for name in self.nodes if self.chance.random() < 0.4}
        self.pledges[app] = HeldPledge(f"d/{app}", "d", Selector(match_labels={"app": app}), shape, units)
        self.scheduler.put_fact(self.pledges[app], self.now)

    def lose_node(self) -> None:
        if self.nodes:
            name = self.chance.choice(sorted(self.nodes))
            del self.nodes[name]
            self.scheduler.remove_node(name, self.now)
            for uid in [uid for uid, pod in self.pods.items() if pod.node == name]:
                self.remove(uid)

    def bind(self) -> None:
        if self.bindings:
            uid = self.chance.choice(sorted(self.bindings))
            node = self.bindings.pop(uid)
            if node not in self.nodes:
                self.scheduler.bind_failed(uid, "node is gone", self.now)
                return
            if self.chance.random() < 0.5:
                self.scheduler.bound(uid, self.now)
                self.put(self.pods[uid]._replace(node=node))
            else:
                self.put(self.pods[uid]._replace(node=node))
                self.scheduler.bound(uid, self.now)

    def refuse_binding(self) -> None:
        if self.bindings:
            uid = self.chance.choice(sorted(self.bindings))
            del self.bindings[uid]
            self.scheduler.bind_failed(uid, "conflict", self.now)

    def evict(self) -> None:
        if self.going:
            self.remove(self.chance.choice(sorted(self.going)))

    def refuse_eviction(self) -> None:
        if self.going:
            uid = self.chance.choice(sorted(self.going))
            self.going.discard(uid)
            self.scheduler.evict_failed(uid, "a budget forbids it", self.now)

    def put(self, pod: PodFacts) -> None:
        self.pods[pod.uid] = pod
        self.scheduler.put_pod(pod, self.now)

    def remove(self, uid: str) -> None:
        del self.pods[uid]
        self.bindings.pop(uid, None)
        self.going.discard(uid)
        self.scheduler.remove_pod(uid, self.now)

    # -- what is decided

    def heed(self, decision: Decision) -> None:
        match decision:
            case Bind(pod, node):
                mine = self.pods[pod.uid]
                assert not mine.node, f"{pod.name} is bound twice"
                assert pod.uid not in self.bindings, f"{pod.name} is bound twice"
                assert self.lacks(mine, node) == "", f"{pod.name} on {node}"
                whole = self.whole(node)
                self.bindings[pod.uid] = node
                assert self.whole(node) or not whole, f"{pod.name} took of a unit on {node}"
                self.done["bound"] += 1
            case Evict(victim, pod, node):
                assert victim.priority < pod.priority
                assert victim.node == node
                assert victim.uid in self.pods
                assert victim.uid not in self.going, "asked for twice"
                self.going.add(victim.uid)
                self.done["evicted"] += 1
            case Nominate(pod, _):
                assert not self.pods[pod.uid].node
            case Defer(pod, _, why):
                assert why
                self.done["deferred"] += 1

    # -- the slow truth

    def there(self, node: str) -> list[PodFacts]:
        """Bound to it, or about to be."""
        return [
            pod
            for uid, pod in self.pods.items()
            if not pod.ended and (pod.node == node or self.bindings.get(uid) == node)
        ]

    def lacks(self, pod: PodFacts, name: str) -> str:
        """Why a pod cannot be there; empty: it can."""
        node = self.nodes.get(name)
        if node is None:
            return "no such node"
        if node.unschedulable:
            return "cordoned"
        if any(node.labels.get(key) != value for key, value in pod.shape.node_selector):
            return "not selected"
        there = self.there(name)
        for resource in ("cpu", "memory"):
            asked = sum(dict(p.shape.requests)[resource] for p in (*there, pod))
            if asked > node.allocatable[resource]:
                return f"{resource} {asked} of {node.allocatable[resource]}"
        return "too many pods" if len(there) >= node.allocatable["pods"] else ""

    def whole(self, name: str, more: PodFacts | None = None) -> bool:
        """All pods, each unit that somebody stands on at its full size, and the units that nobody stands on, have
        room: those that came first are seated first."""
        units = {app: pledge.units.get(name, 0) for app, pledge in self.pledges.items()}
        cpu = memory = 0
        for pod in sorted((*self.there(name), *((more,) if more else ())), key=lambda p: (p.created, p.uid)):
            asked, app = dict(pod.shape.requests), pod.labels["app"]
            if units.get(app):
                units[app] -= 1
                unit = self.pledges[app].shape
                asked = {"cpu": max(asked["cpu"], unit.cpu), "memory": max(asked["memory"], unit.memory)}
            cpu, memory = cpu + asked["cpu"], memory + asked["memory"]
        for app, left in units.items():
            unit = self.pledges[app].shape
            cpu, memory = cpu + left * unit.cpu, memory + left * unit.memory
        return cpu <= self.nodes[name].allocatable["cpu"] and memory <= self.nodes[name].allocatable["memory"]

    def check(self) -> None:
        """No pod is forgotten, and the book says what is."""
        waiting = {uid for uid, pod in self.pods.items() if not pod.node and not pod.ended}
        assert {p.pod.uid for p in self.scheduler.pending()} == waiting
        book = self.scheduler.book
        for name in book.names:
            expected = sum(dict(p.shape.requests)["cpu"] for p in self.there(name))
            assert int(book.used[book.row[name], 0]) == expected, name

    def settle(self) -> None:
        """Everything that was asked for is done; who still waits fits nowhere."""
        for _ in range(3):
            while self.bindings or self.going:
                while self.bindings:
                    self.bind()
                while self.going:
                    self.evict()
                self.step()
            self.now += QUIET_S
            self.step()
        while self.bindings:
            self.bind()
        for pod in self.pods.values():
            if not pod.node and not pod.ended:
                for name in self.nodes:
                    assert self.lacks(pod, name) or not self.whole(name, pod), f"{pod.name} fits on {name}, and waits"
