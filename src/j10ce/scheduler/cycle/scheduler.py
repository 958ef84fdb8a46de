"""Events in, decisions out. It has no clock, asks nobody and waits for nothing: what it decides, a driver carries out.

The same events in the same order give the same decisions; nodes of equal score are taken in the order of their names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from j10ce.scheduler.book.around import FACTS
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import LoadFacts, NodeFacts, PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.cycle.decisions import Decision, Defer, Evict, Nominate
from j10ce.scheduler.cycle.engine import Choice, Engine
from j10ce.scheduler.cycle.framework import BookReader, Candidate, Gathers, Key, Reach, Retries, Side
from j10ce.scheduler.cycle.nominated import Nominated
from j10ce.scheduler.cycle.placing import Placed, Placing, TurnedDown
from j10ce.scheduler.cycle.profile import Faulted, Profile, Watchers, contained, loud
from j10ce.scheduler.cycle.queue import KUBERNETES, Backoff, Entry, Group, Place, Queue, same_wishes
from j10ce.scheduler.cycle.refusals import NoFit

EQUAL: Final = 256  # pods that are decided together
MOST_SHAPES: Final = 20_000  # remembered, so that equal ones are one
FAULT: Final = "fault"  # in place of a plugin's name
UNTRACKED: Final = "kube-system"


class Pending(NamedTuple):
    """A pod without a node. `place`: as in the queue, or waiting, or binding."""

    pod: PodFacts
    place: str
    why: str
    until: float


class Scheduler:
    def __init__(
        self,
        profiles: Sequence[Profile],
        book: Book | None = None,
        faulted: Faulted = loud,
        backoff: Backoff = KUBERNETES,
    ) -> None:
        """The first profile says how the queue of all is sorted. `faulted` hears of plugins that fail where there is no
        pod whose turn it is; what fails about a pod is said to the pod."""
        self.book = Book() if book is None else book
        self.nominated = Nominated(self.book)
        self.engines = {p.name: Engine(p, self.book, self.nominated) for p in profiles}
        self._sort = profiles[0].queue_sort if profiles else None
        self._faulted, self._backoff = faulted, backoff
        self._placing = Placing(self.book, faulted)
        self._evicting: dict[str, set[str]] = {}  # uid of a victim: of the pods that wait for it to go
        self._awaits: dict[str, set[str]] = {}  # uid of a pod: of the victims that it waits for
        plugins = {id(p): p for profile in profiles for p in profile.plugins}.values()
        self._gathers = next((p for p in plugins if isinstance(p, Gathers)), None)
        moves = self._sort is not None and self._sort.moves
        self._queue = Queue(self._key, moves=moves, backoff=backoff, side=self._side)
        for plugin in plugins:
            if isinstance(plugin, BookReader):
                plugin.read(self.book)
        self._watchers = Watchers(tuple(plugins), faulted)
        self._judged = {
            name: {f.name for f in e.profile.filters if f.reach is not Reach.CLUSTER}
            for name, e in self.engines.items()
        }
        self._aside: dict[str, PodFacts] = {}  # of others, or ended: whoever watches pods hears when they go
        self._shapes: dict[Shape, Shape] = {}
        self._out: list[Decision] = []  # decided between two steps
        self._room = self._other = False  # since the last step: nodes or room came; or something else

    # -- events

    def put_node(self, node: NodeFacts, now: float) -> None:
        self.book.put_node(node)
        self._room = self._other = True

    def remove_node(self, name: str, now: float) -> None:
        self.book.remove_node(name)
        self._other = True

    def put_fact(self, fact: Any, now: float) -> None:
        """An owner, namespace, budget, pledge: whatever is neither pod nor node."""
        if isinstance(fact, FACTS):
            self.book.around.put(fact)
        elif isinstance(fact, LoadFacts):
            self.book.put_load(fact)
        self._watchers.fact(fact, now)
        self._other = True

    def remove_fact(self, fact: Any, now: float) -> None:
        if isinstance(fact, FACTS):
            self.book.around.remove(fact)
        elif isinstance(fact, LoadFacts):
            self.book.put_load(fact._replace(load=0.0))
        self._watchers.fact(fact, now, gone=True)
        self._other = True

    def put_pod(self, pod: PodFacts, now: float) -> None:
        pod = self._with_known_shape(pod)
        if pod.namespace != UNTRACKED:
            self._watchers.pod(pod, now)
        self.book.put_pod(pod)
        self._other = True
        if pod.node or pod.ended:
            self._settled(pod, now)
        elif pod.scheduler in self.engines and not self._placing.has(pod.uid):
            self._wants(pod, now)
        if self._watchers.of_pods:
            if pod.uid in self.book.pods or pod.uid in self._queue.entries:
                self._aside.pop(pod.uid, None)
            else:
                self._aside[pod.uid] = pod

    def remove_pod(self, uid: str, now: float) -> None:
        pod = self.book.pods.get(uid)
        entry = self._queue.remove(uid)
        self._placing.drop(uid, now)
        self._leave(uid, now)
        self.nominated.remove(uid)
        self.book.remove_pod(uid)
        aside = self._aside.pop(uid, None)
        if pod is None:
            pod = aside if entry is None else entry.pod
        if pod is not None and pod.namespace != UNTRACKED:
            self._watchers.pod(pod, now, gone=True)
        self._room = self._other = True

    def bound(self, uid: str, now: float) -> None:
        self._placing.bound(uid, now)

    def bind_failed(self, uid: str, why: str, now: float) -> None:
        if (down := self._placing.failed(uid, why, now)) is not None:
            self._put_back(down, now, self._out)

    def evict_failed(self, uid: str, why: str, now: float) -> None:
        """The victim stays, so whoever waits for it looks for another way."""
        for waiting in self._evicting.pop(uid, ()):
            self._await_nobody(waiting)
            if (entry := self._queue.entries.get(waiting)) is not None:
                entry.refused = f" An eviction was refused: {why}"
                entry.why = entry.why.removesuffix(entry.refused) + entry.refused
                self._out.append(Defer(entry.pod, "FailedScheduling", entry.why, entry.until))
                self._unnominate(entry.pod, self._out)
                self._queue.activate(entry, now)

    # -- decisions

    def step(self, now: float, most: int = 1 << 30) -> list[Decision]:
        """Of all pods that are due; of so many at most, where something else waits. Times never go back."""
        out, self._out = [d for d in self._out if d.pod.uid in self._queue.entries], []
        for woken in self._queue.wake(now):
            self._let_in(woken, now, out)
        self._heed_events(now, out)
        self._release(now, out)
        tried = 0
        while tried < most and (entry := self._queue.pop(now)) is not None:
            equal = self._queue.pop_equal(entry, min(EQUAL, most - tried), now)
            tried += len(equal)
            self._decide(equal, now, out)
        self._release(now, out)
        return out

    def next_at(self, now: float) -> float:
        """When to step again if nothing happens."""
        if self._out or self._room or self._other or self._queue.has_active():
            return now
        return min(self._queue.next_at(), self._placing.next_at())

    def pending(self) -> Iterator[Pending]:
        for e in self._queue.entries.values():
            yield Pending(e.pod, e.place.value, e.why, e.until)
        for w in self._placing.waiting.values():
            yield Pending(w.placed.pod, "waiting", "; ".join(w.reasons), min(w.until.values(), default=-math.inf))
        for p in self._placing.binding.values():
            yield Pending(p.pod, "binding", p.why, math.inf)

    # -- who is tried

    def _key(self, pod: PodFacts, now: float) -> Key:
        """None where the plugin failed."""
        return contained(self._faulted, self._sort.queue_key, pod, now) if self._sort is not None else 0

    def _side(self, pod: PodFacts) -> Side | None:
        return contained(self._faulted, self._gathers.side, pod) if self._gathers is not None else None

    def _with_known_shape(self, pod: PodFacts) -> PodFacts:
        """Equal shapes are one, so that to tell them apart costs nothing."""
        if len(self._shapes) > MOST_SHAPES:
            self._shapes.clear()
        shape = self._shapes.setdefault(pod.shape, pod.shape)
        return pod if shape is pod.shape else pod._replace(shape=shape)

    def _settled(self, pod: PodFacts, now: float) -> None:
        """It has a node, or needs none any more."""
        self._forget(pod)
        if pod.ended:
            self._placing.drop(pod.uid, now)
            self._leave(pod.uid, now)
            self._room = True
        else:
            self._placing.seen(pod, now)

    def _wants(self, pod: PodFacts, now: float) -> None:
        known = self._queue.entries.get(pod.uid)
        if pod.deleted is not None:
            self._queue.remove(pod.uid)
            self.nominated.remove(pod.uid)
            return
        if known is None and pod.nominated:
            self.nominated.put(pod, pod.nominated)
        same = known is not None and same_wishes(known.pod, pod)
        entry = self._queue.put(pod)
        if not same:
            self._let_in(entry, now, self._out)

    def _let_in(self, entry: Entry, now: float, out: list[Decision]) -> None:
        pod = entry.pod
        for plugin in self.engines[pod.scheduler].profile.pre_enqueues:
            try:
                why = plugin.pre_enqueue(pod, now)
                until = plugin.again_at(pod, now) if why and isinstance(plugin, Retries) else math.inf
            except Exception as fault:  # a plugin's: who is not let in by it costs nobody else anything
                why, until = _said_of(pod, fault), now + self._backoff.most_s
            if why:
                if entry.why != why:
                    out.append(Defer(pod, "SchedulingGated", why, until))
                self._queue.gate(entry, why, until)
                return
        self._queue.activate(entry, now)

    def _heed_events(self, now: float, out: list[Decision]) -> None:
        if not (self._room or self._other):
            return
        for group in self._queue.groups():
            entries = self._queue.group(group)
            if self._helped(group, entries[0].pod):
                for entry in entries:
                    self._queue.activate(entry, now)
        for entry in list(self._queue.within(Place.GATED)):
            if not entry.pod.gates:
                self._let_in(entry, now, out)
        self._room = self._other = False

    def _forget(self, pod: PodFacts) -> None:
        """It looks for no node any more."""
        self._queue.remove(pod.uid)
        if len(self.nominated):
            self.nominated.remove(pod.uid)
        if self._awaits:
            self._await_nobody(pod.uid)

    def _helped(self, group: Group, pod: PodFacts) -> bool:
        """Whether what has happened may help them. What filters said of single nodes is looked up; all else may be
        otherwise whatever happens."""
        if not group.plugins <= self._judged[group.scheduler]:
            return True
        try:
            return self._room and self.engines[group.scheduler].hopes(pod)
        except Exception:  # it is met again when the pod is tried, and said there
            return True

    # -- what becomes of them

    def _decide(self, entries: list[Entry], now: float, out: list[Decision]) -> None:
        done = self._decide_equal(entries, now, out) if len(entries) > 1 else 0
        for entry in entries[done:]:
            try:
                answer = self.engines[entry.pod.scheduler].choose(entry.pod)
                if isinstance(answer, Choice):
                    self._place(entry, answer, now, out)
                else:
                    self._unfit(entry, answer, now, out)
            except Exception as fault:  # a plugin's: it costs this pod its turn, and nobody else
                self._at_fault(entry, fault, now, out)

    def _at_fault(self, entry: Entry, fault: Exception, now: float, out: list[Decision]) -> None:
        why = _said_of(entry.pod, fault)
        self._queue.fail(entry, frozenset((FAULT,)), why, now, -math.inf)
        out.append(Defer(entry.pod, "SchedulerError", why, entry.until))

    def _decide_equal(self, entries: list[Entry], now: float, out: list[Decision]) -> int:
        """How many of them are decided."""
        pod = entries[0].pod
        engine = self.engines[pod.scheduler]
        try:
            choices = engine.equal(pod, len(entries))
        except Exception:  # it is met again, pod by pod, and said there
            return 0
        if choices and not engine.profile.asks_before_binding:
            self._place_all(entries[: len(choices)], choices, now, out)
            return len(choices)
        for n, (entry, choice) in enumerate(zip(entries, choices, strict=False)):
            if not self._place(entry, choice, now, out):
                return n + 1
        return len(choices)

    def _place_all(self, entries: list[Entry], choices: list[Choice], now: float, out: list[Decision]) -> None:
        names, profile, whys = self.book.names, self.engines[entries[0].pod.scheduler].profile, dict[int, str]()
        placed = list[Placed]()
        for entry, choice in zip(entries, choices, strict=True):
            self._forget(entry.pod)
            if (why := whys.get(choice.points >> 20)) is None:
                why = whys[choice.points >> 20] = choice.why(len(self.book))
            placed.append(Placed(entry.pod, names[choice.row], why, profile))
        self._placing.place_all(placed, [choice.row for choice in choices], now, out)

    def _place(self, entry: Entry, choice: Choice, now: float, out: list[Decision]) -> bool:
        pod, node = entry.pod, self.book.names[choice.row]
        self._forget(pod)
        placed = Placed(pod, node, choice.why(len(self.book)), self.engines[pod.scheduler].profile)
        down = self._placing.place(placed, now, out)
        if down is not None:
            self._put_back(down, now, out, entry.attempts)
        return down is None

    def _put_back(self, down: TurnedDown, now: float, out: list[Decision], attempts: int = 0) -> None:
        entry = self._queue.put(down.pod)
        entry.attempts = attempts
        why = f"{down.plugin}: {down.why}"
        self._queue.fail(entry, frozenset((down.plugin,)), why, now, -math.inf)
        out.append(Defer(down.pod, "FailedScheduling", why, entry.until))
        self._room = True

    def _release(self, now: float, out: list[Decision]) -> None:
        for down in self._placing.release(now, out):
            self._put_back(down, now, out)

    def _unfit(self, entry: Entry, no_fit: NoFit, now: float, out: list[Decision]) -> None:
        pod, profile, why = entry.pod, self.engines[entry.pod.scheduler].profile, str(no_fit)
        until = math.inf
        if waited := self._awaits.get(pod.uid):
            why += f" It waits for {len(waited)} pods to go."
        else:
            for plugin in profile.post_filters if len(no_fit.helpful) else ():
                answer = plugin.post_filter(pod, no_fit.helpful, self.engines[pod.scheduler], now)
                if isinstance(answer, Candidate):
                    self._preempt(entry, answer, now, out)
                    break
                why += f" {answer}" if answer else ""
                until = min(until, plugin.again_at(pod, now) if isinstance(plugin, Retries) else math.inf)
            else:
                entry.refused = ""
                self._unnominate(pod, out)
        why += entry.refused
        if now + self._backoff.first_s <= until < math.inf:
            entry.attempts = 0  # a time that a plugin knows is kept to
        self._queue.fail(entry, no_fit.plugins, why, now, until)
        out.append(Defer(pod, "FailedScheduling", why, entry.until))

    def _preempt(self, entry: Entry, candidate: Candidate, now: float, out: list[Decision]) -> None:
        """Others that are awaited there and give way look for another place."""
        pod, node = entry.pod, candidate.node
        for other in self.nominated.behind(pod, self.book.row[node]):
            self._unnominate(other, out)
            if (waiting := self._queue.entries.get(other.uid)) is not None:
                self._queue.activate(waiting, now)
        for victim in candidate.victims:
            why = candidate.why.get(victim.uid, "")
            if victim.uid in self._placing.waiting:
                self._put_back(self._placing.reject(victim.uid, "Preempted", why, now), now, out)
                continue
            if victim.uid not in self._evicting:
                out.append(Evict(victim, pod, node, why))
            self._evicting.setdefault(victim.uid, set()).add(pod.uid)
            self._awaits.setdefault(pod.uid, set()).add(victim.uid)
        self.nominated.put(pod, node)
        out.append(Nominate(pod, node))
        self._room = True

    def _unnominate(self, pod: PodFacts, out: list[Decision]) -> None:
        if self.nominated.row(pod) is not None:
            self.nominated.remove(pod.uid)
            out.append(Nominate(pod, ""))

    def _leave(self, uid: str, now: float) -> None:
        """A pod is gone. Whoever waits for no other any more is tried without delay: its room was made for it."""
        for waiting in self._evicting.pop(uid, ()):
            others = self._awaits.get(waiting)
            if others is None:
                continue
            others.discard(uid)
            if not others and (entry := self._queue.entries.get(waiting)) is not None:
                entry.attempts, entry.refused = 0, ""
                self._queue.activate(entry, now)
        self._await_nobody(uid)

    def _await_nobody(self, uid: str) -> None:
        """Its victims go nevertheless."""
        for victim in self._awaits.pop(uid, ()):
            if victim in self._evicting:
                self._evicting[victim].discard(uid)


def _said_of(pod: PodFacts, fault: Exception) -> str:
    return f"a plugin of profile {pod.scheduler} failed: {type(fault).__name__}: {fault}"
