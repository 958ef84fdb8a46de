"""The account of one owner. A pod takes its first free slot, and a slot keeps what all its pods have added up to."""

from __future__ import annotations

from heapq import heappop, heappush

from j10ce.scheduler.accounts.clock import PodClock
from j10ce.scheduler.accounts.flow import Flows
from j10ce.scheduler.accounts.identity import Identity, acceptable_overhead
from j10ce.scheduler.accounts.measure import Measure, PodCounts, ServiceSums, metric, preemption_overhead
from j10ce.scheduler.accounts.online import Online
from j10ce.scheduler.book.facts import PodFacts


class ServiceSlot:
    """The place of one of an owner's pods. `holder` is who has it; pods that are being deleted have it no more."""

    __slots__ = ("flows", "holder", "number")

    def __init__(self, number: int, origin: float) -> None:
        self.number = number
        self.flows = Flows(origin)
        self.holder: Incarnation | None = None


class Incarnation:
    """A pod of an owner: from when it is first seen until it has ended."""

    __slots__ = ("clock", "identity", "pod", "slot")

    def __init__(self, pod: PodFacts, identity: Identity, clock: PodClock, slot: ServiceSlot) -> None:
        self.pod, self.identity, self.clock, self.slot = pod, identity, clock, slot

    @property
    def current(self) -> bool:
        return self.slot.holder is self

    @property
    def started(self) -> bool:
        return self.clock.run_start is not None


class OwnerAccount:
    """Running and pending count those that hold a slot."""

    def __init__(self, key: str, identity: Identity, origin: float) -> None:
        self.key, self.identity, self.origin = key, identity, origin
        self.version = 0  # another one after each event: for whoever keeps what it answered
        self.slots: list[ServiceSlot] = []
        self.flows = Flows(origin)
        self.online = Online(identity.slots, origin)
        self.live: dict[str, Incarnation] = {}  # by uid
        self.running = self.pending = self.succeeded = 0
        self.allocating: set[str] = set()  # uids of pods that are about to be bound
        self.owners: list[tuple[str, str, str]] = []  # namespace, kind and name; the first one says how many slots
        self.gone = False  # its owner is
        self._free: list[int] = []

    # -- events

    def open(self, pod: PodFacts, identity: Identity, created: float) -> Incarnation:
        """More pods than slots are a fact of rolling updates: they get slots of their own."""
        slot = self._free_slot()
        clock = PodClock(created)
        incarnation = slot.holder = self.live[pod.uid] = Incarnation(pod, identity, clock, slot)
        for flows in (slot.flows, self.flows):
            flows.opened(clock)
        self.pending += 1
        self.gone = False
        return incarnation

    def bind(self, it: Incarnation, at: float) -> None:
        at = max(at, it.clock.created)
        for flows in (it.slot.flows, self.flows):
            flows.bind_started(at)
        it.clock.bind_start = at

    def run(self, it: Incarnation, at: float, now: float) -> None:
        at = max(at, it.clock.created if it.clock.bind_start is None else it.clock.bind_start)
        for flows in (it.slot.flows, self.flows):
            flows.run_started(it.clock, at)
        it.clock.run_start = at
        self.online.moved(at, online=1, now=now)
        if it.current:
            self.running += 1
            self.pending -= 1

    def release(self, it: Incarnation) -> None:
        """Its slot is free for the next; its own time may go on."""
        if it.current:
            it.slot.holder = None
            heappush(self._free, it.slot.number)
            self.running -= it.started
            self.pending -= not it.started

    def close(self, it: Incarnation, at: float, succeeded: bool) -> None:
        self.release(it)
        at = max((at, *(stamp for stamp in (it.clock.created, it.clock.bind_start, it.clock.run_start) if stamp)))
        for flows in (it.slot.flows, self.flows):
            flows.closed(it.clock, at, succeeded)
        if it.started:
            self.online.moved(at, online=-1, now=at)
        it.clock.end, it.clock.succeeded = at, succeeded
        self.succeeded += succeeded
        del self.live[it.pod.uid]
        self.allocating.discard(it.pod.uid)

    def wanted(self, identity: Identity, now: float) -> None:
        """How its owner is now; it may have been scaled."""
        if identity.slots != self.identity.slots:
            self.online.moved(now, slots=identity.slots - self.identity.slots)
        self.identity = identity

    def remember(self, waiting: float, binding: float, running: float, killed: float, incarnations: int) -> None:
        """One more slot, and what pods that are gone have added up to in it."""
        slot = ServiceSlot(len(self.slots), self.origin)
        self.slots.append(slot)
        for flows in (slot.flows, self.flows):
            flows.add(waiting, binding, running, killed, incarnations)

    def resume(self, it: Incarnation, holds: bool) -> None:
        """A pod that goes on where it was written down. The sums of pods that ran at once are resumed apart."""
        self.live[it.pod.uid] = it
        for flows in (it.slot.flows, self.flows):
            flows.resumed(it.clock)
        if holds:
            it.slot.holder = it
            self.running += it.started
            self.pending += not it.started

    def resumed(self) -> None:
        """All pods are there that it had: the other slots are free."""
        self._free = [slot.number for slot in self.slots if slot.holder is None]

    # -- questions

    def sums(self, now: float) -> ServiceSums:
        """Of all that it ever had, as an average is measured."""
        return _sums("average", self.flows, self.online, 0.0, now)

    def measure(self, it: Incarnation, now: float, default_acceptable: float = 1.0) -> Measure:
        identity, running = it.identity, it.pod.phase == "Running"
        flows = it.slot.flows if identity.approach == "independent" else self.flows
        at_stake = it.clock.running(now) if running else 0.0
        sums = _sums(identity.approach, flows, self.online, at_stake, now)
        pods = PodCounts(self.running, self.pending, self.running - running, self.online.slots)
        return Measure(
            sums,
            pods,
            identity.slo,
            metric(identity.approach, sums, identity.slo, pods),
            preemption_overhead(identity.approach, sums),
            acceptable_overhead(identity.slo, identity.acceptable, default_acceptable),
            self.contributes(identity),
            it.clock.running(now),
        )

    def contributes(self, identity: Identity) -> bool:
        return identity.approach != "concurrent" or self.running + len(self.allocating) >= self.online.slots

    # -- inside

    def _free_slot(self) -> ServiceSlot:
        if self._free:
            return self.slots[heappop(self._free)]
        self.slots.append(ServiceSlot(len(self.slots), self.origin))
        return self.slots[-1]


def _sums(approach: str, flows: Flows, online: Online, at_stake: float, now: float) -> ServiceSums:
    """`at_stake`: running time of the pod in question, which a task would lose with it."""
    since = now - flows.origin
    ran = flows.running.at(since)
    match approach:
        case "aggregate":
            effective, discarded = ran - flows.killed - at_stake, flows.killed + at_stake
        case "concurrent":
            effective, discarded = online.sums(now)
        case _:
            effective, discarded = ran, 0.0
    return ServiceSums(effective, discarded, flows.waiting.at(since), flows.binding.at(since), flows.incarnations)
