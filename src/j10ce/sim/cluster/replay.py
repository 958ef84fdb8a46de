"""One run: what happens, by time, and what the scheduler decides after each instant."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from j10ce.errors import QosError
from j10ce.model.quantity import Duration
from j10ce.scheduler.book.facts import NodeFacts
from j10ce.scheduler.cycle.decisions import Bind, Decision, Evict
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.sim.cluster import chance
from j10ce.sim.cluster.actors import SimOwner, SimPod, nodes
from j10ce.sim.cluster.given.arrivals import Arrival
from j10ce.sim.cluster.given.scenario import Outage, Scenario
from j10ce.sim.cluster.outcome import RunResult
from j10ce.sim.cluster.tally import Tally, total

FINEST_S: Final = 0.001  # no two instants at which nothing happens but time are nearer
MOST_ROUNDS: Final = 10_000  # of decisions within one instant
AGAIN_S: Final = 1.0  # until an owner tries again whose pod had to go in the very instant in which it was made


class Occurrence(NamedTuple):
    at: float
    number: int  # those of one instant go by it
    happen: Callable[[Any], None]
    what: Any


class Replay:
    """`arrivals` by time; `seed` decides what chance does. The scheduler is new, and this run's own."""

    def __init__(self, scenario: Scenario, arrivals: Iterator[Arrival], scheduler: Scheduler, seed: int) -> None:
        self.now = 0.0
        self._scenario, self._scheduler, self._seed = scenario, scheduler, seed
        self._horizon = scenario.horizon.seconds
        self._grace = scenario.termination_grace.seconds
        histogram = {Duration.parse(span).seconds: times for span, times in scenario.start_overhead.items()}
        self._starts = chance.Spans(histogram, scenario.more_overhead.seconds)
        self._arrivals = arrivals
        self._events: list[Occurrence] = []
        self._count = 0
        self._actors: dict[int, SimOwner] = {}
        self._pods: dict[str, SimPod] = {}
        self._tally = Tally(scenario.tariff)
        self._nodes = {node.name: node for node in nodes(scenario)}
        self._up = dict.fromkeys(self._nodes, 0.0)  # since when each node is there
        self._capacity = self._used = 0.0  # millicore seconds

    # -- the loop

    def instants_of(self) -> Iterator[float]:
        """Runs to the horizon; says after each instant when it was."""
        for node in self._nodes.values():
            self._scheduler.put_node(node, 0.0)
        for outage in self._scenario.failures:
            self._plan_outage(outage, 0)
        self._next_arrival()
        while (at := self._next_at()) <= self._horizon:
            self.now = at
            while self._events and self._events[0].at <= at:
                event = heapq.heappop(self._events)
                event.happen(event.what)
            self._decide()
            yield at
        self.now = self._horizon

    def run(self) -> RunResult:
        for _ in self.instants_of():
            pass
        return self.result()

    def _next_at(self) -> float:
        happens = self._events[0].at if self._events else math.inf
        return min(happens, max(self._scheduler.next_at(self.now), self.now + FINEST_S))

    def _decide(self) -> None:
        for _ in range(MOST_ROUNDS):
            for decision in self._scheduler.step(self.now):
                self._carry_out(decision)
            if self._scheduler.next_at(self.now) > self.now:
                return
        raise QosError(f"at {self.now:g} s the policy does not come to rest within {MOST_ROUNDS} rounds of decisions")

    def _carry_out(self, decision: Decision) -> None:
        match decision:
            case Bind(pod, node):
                self._after(self._scenario.bind_latency.seconds, self._bound, (pod.uid, node))
            case Evict(victim):
                self._evicted(victim.uid)
            case _:  # nominations and waits are the scheduler's own
                pass

    def _after(self, delay: float, happen: Callable[[Any], None], what: Any) -> None:
        """Now, where there is no delay."""
        if delay <= 0:
            happen(what)
        else:
            self._at(self.now + delay, happen, what)

    def _at(self, at: float, happen: Callable[[Any], None], what: Any) -> None:
        if at <= self._horizon:
            self._count += 1
            heapq.heappush(self._events, Occurrence(at, self._count, happen, what))

    # -- owners come and go

    def _next_arrival(self) -> None:
        """Only the next one is known: a trace is read as time goes."""
        if (arrival := next(self._arrivals, None)) is not None:
            self._at(max(arrival.at, self.now), self._arrive, arrival)

    def _arrive(self, arrival: Arrival) -> None:
        self._next_arrival()
        actor = self._actors[arrival.number] = SimOwner(arrival)
        if actor.facts is not None:
            self._scheduler.put_fact(actor.facts, self.now)
        for slot in range(min(arrival.slots, arrival.completions or arrival.slots)):
            self._create(actor, slot, arrival.nodes[slot] if slot < len(arrival.nodes) else "")
        if arrival.kind != "Job" and arrival.duration < math.inf:
            self._at(self.now + arrival.duration, self._depart, actor)

    def _depart(self, actor: SimOwner) -> None:
        actor.gone = True
        for pod in list(actor.pods.values()):
            self._vanish(pod)
        self._fold(actor)
        if actor.facts is not None:
            self._scheduler.remove_fact(actor.facts, self.now)
        del self._actors[actor.arrival.number]

    def _fold(self, actor: SimOwner) -> None:
        arrival = actor.arrival
        if not arrival.fixed:
            where = (arrival.name, arrival.class_, arrival.slo, arrival.price)
            self._tally.fold(*where, actor.sums, arrival.number)

    # -- pods

    def _create(self, actor: SimOwner, slot: int, node: str = "") -> None:
        """`node`: where it runs already."""
        made = actor.next(slot, self.now)
        actor.sums.lives += 1
        self._pods[made.pod.uid] = made
        if node:
            made.pod = made.pod._replace(node=node)
            self._run(made)
            if node in self._scenario.drain and not actor.arrival.fixed:
                self._after(0.0, self._evicted, made.pod.uid)
        else:
            self._scheduler.put_pod(made.pod, self.now)

    def _bound(self, where: tuple[str, str]) -> None:
        uid, node = where
        made = self._pods.get(uid)
        if made is None or made.deleted or node not in self._up:
            self._scheduler.bind_failed(uid, "it, or its node, is gone", self.now)
            return
        made.of.sums.starts += 1
        made.pod = made.pod._replace(node=node)
        self._scheduler.bound(uid, self.now)
        draw = self._starts.draw(self._seed, made.of.arrival.number, made.of.sums.starts)
        self._after(draw, self._run, made)

    def _run(self, made: SimPod) -> None:
        if made.deleted:
            return
        made.started = self.now
        made.pod = made.pod._replace(phase="Running", started=self.now)
        self._scheduler.put_pod(made.pod, self.now)
        if made.of.arrival.kind == "Job":
            self._at(self.now + made.of.arrival.duration, self._succeed, made)

    def _succeed(self, made: SimPod) -> None:
        actor = made.of
        if made.deleted:
            return
        self._scheduler.put_pod(made.pod._replace(phase="Succeeded"), self.now)
        self._vanish(made, done=True)
        actor.done += 1
        left = actor.arrival.completions - actor.done
        if not left:
            self._depart(actor)
        elif left > len(actor.pods):
            self._create(actor, made.slot)

    def _evicted(self, uid: str) -> None:
        made = self._pods.get(uid)
        if made is None or made.deleted:
            self._scheduler.evict_failed(uid, "it is gone", self.now)
            return
        made.of.sums.preemptions += 1
        if self._grace and made.started <= self.now:
            self._end_gracefully(made)
        else:
            self._vanish(made)
            self._replace(made)

    def _end_gracefully(self, made: SimPod) -> None:
        made.deleted = True
        made.pod = made.pod._replace(deleted=self.now)
        self._scheduler.put_pod(made.pod, self.now)
        ordered = made.of.arrival.kind == "StatefulSet"  # whose next pod has the name of the one before
        self._at(self.now + self._grace, self._vanish_at_last if ordered else self._vanish, made)
        if not ordered:
            self._replace(made)

    def _vanish_at_last(self, made: SimPod) -> None:
        self._vanish(made)
        self._replace(made)

    def _replace(self, made: SimPod) -> None:
        """Not without end in one instant: pods that go for each other in turns would let no time pass."""
        wait = self._scenario.recreate_after.seconds
        if made.pod.created >= self.now:
            wait = max(wait, AGAIN_S)
        if made.of.recreates:
            self._after(wait, self._recreate, (made, wait))

    def _recreate(self, what: tuple[SimPod, float]) -> None:
        made, empty = what
        if made.of.recreates:
            made.of.sums.there += empty  # its place was, for so long
            self._create(made.of, made.slot)

    def _vanish(self, made: SimPod, done: bool = False) -> None:
        """Nothing is left of it. What a Job's pod did is lost, unless it is `done`."""
        if self._pods.pop(made.pod.uid, None) is None:
            return
        made.deleted = True
        del made.of.pods[made.pod.uid]
        self._count_in(made)
        if not done and made.of.arrival.kind == "Job":
            made.of.sums.discarded += made.ran(self.now)
        if made.started > self.now and not made.of.gone:
            made.of.sums.unrun += 1
        self._scheduler.remove_pod(made.pod.uid, self.now)

    def _count_in(self, made: SimPod) -> None:
        ran = made.ran(self.now)
        made.of.sums.there += self.now - made.pod.created
        made.of.sums.running += ran
        self._used += ran * made.of.cpu

    # -- nodes

    def _plan_outage(self, outage: Outage, nth: int) -> None:
        """The next one of this kind."""
        if isinstance(outage.at, Duration):
            self._at(outage.at.seconds, self._fail, (outage, outage.node, 0))
        elif isinstance(outage.every, Duration):
            kind = self._scenario.failures.index(outage)
            wait = -math.log1p(-chance.share(self._seed, chance.FAILURES, kind, nth)) * outage.every.seconds
            known = list(self._nodes)
            which = int(chance.share(self._seed, chance.VICTIMS, kind, nth) * len(known))
            self._at(self.now + wait, self._fail, (outage, outage.node or known[which], nth))

    def _fail(self, failure: tuple[Outage, str, int]) -> None:
        outage, name, nth = failure
        if outage.at != self.now and not isinstance(outage.at, Duration):
            self._plan_outage(outage, nth + 1)
        if name not in self._up:
            return
        self._capacity += self._cpu(self._nodes[name]) * (self.now - self._up.pop(name))
        self._scheduler.remove_node(name, self.now)
        for made in [pod for pod in self._pods.values() if pod.pod.node == name]:
            self._vanish(made)
            self._replace(made)
        self._at(self.now + outage.for_.seconds, self._recover, name)

    def _recover(self, name: str) -> None:
        self._up[name] = self.now
        self._scheduler.put_node(self._nodes[name], self.now)

    @staticmethod
    def _cpu(node: NodeFacts) -> int:
        return node.allocatable["cpu"]

    # -- the end

    def result(self) -> RunResult:
        """Once it has run."""
        for actor in self._actors.values():
            for made in actor.pods.values():
                self._count_in(made)
            self._fold(actor)
        for name, since in self._up.items():
            self._capacity += self._cpu(self._nodes[name]) * (self._horizon - since)
        classes = self._tally.classes
        numbers = {name: of.results() for name, of in sorted(classes.items())}
        summed = ("owners", "preemptions", "starts", "pods", "zeroRuns", "penalty", "belowSlo", "belowByAPoint")
        totals = {name: total(classes.values(), name) for name in summed}
        totals["utilisation"] = self._used / self._capacity if self._capacity else 0.0
        curves = {name: of.curve() for name, of in sorted(classes.items())}
        return RunResult(totals, numbers, curves, self._tally.owners())
