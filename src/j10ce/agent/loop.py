"""The ring of one host: sample, snapshot, propose, arbitrate, apply, report.

Every method runs on the ring's thread. Events and orders come in, a Report goes out; nothing else is shared.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.agent import arrival
from j10ce.agent.clock import Instant
from j10ce.agent.guard import Guard
from j10ce.agent.holds import held
from j10ce.control.controller import Controller
from j10ce.kernel.drift import Drift
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.routes import ancestors, place_of
from j10ce.model.kinds import Hold
from j10ce.model.knob import TargetId, part
from j10ce.model.plan import HeldSetting, Join, Outcome, Plan
from j10ce.model.resource import NOTHING
from j10ce.model.snapshot import NodeFacts, Snapshot
from j10ce.model.workload import Handle, Workload
from j10ce.observe.observer import Observer
from j10ce.plan.arbiter import Arbiter, arbitrate
from j10ce.policy.document import NodeDocument
from j10ce.policy.effective import Effective, effective
from j10ce.policy.ledger import Ledger, Line
from j10ce.policy.resolve import Resolution, admit, resolve

Cause = Literal["tick", "change"]
EFFECTIVE_S: Final = 5.0  # how often the protection in force is judged while nothing moves
RESOLVE_S: Final = 30.0  # how often entitlements are derived again while nothing moves: wall clocks jump
YIELD_S: Final = 3600.0  # how long someone else's value is left alone where drift is yielded to


class Report(Struct, frozen=True):
    """One run of the ring."""

    at: Instant
    cause: Cause
    snap: Snapshot
    plan: Plan
    outcome: Outcome
    resolution: Resolution
    effective: Mapping[TargetId, Effective]
    held: tuple[HeldSetting, ...]
    faults: Mapping[str, str]  # controllers that have nothing fresh to say, and why
    drifts: tuple[Drift, ...]
    armed: bool
    cpu_s: float


class Agent:
    def __init__(self, kernel: Kernel, observer: Observer, guards: Sequence[Guard], document: NodeDocument) -> None:
        self.kernel = kernel
        self.observer = observer
        self.guards = list(guards)
        self.quick: Sequence[Controller] = ()  # those that decide an arrival; they never see the whole tree
        self.document = document
        self.armed = False
        self.yields = False  # leave a setting to whoever else writes it
        self.holds: tuple[Hold, ...] = ()  # made on this host; those of the document come on top
        self.released: frozenset[str] = frozenset()  # names of holds that ended on this host, whoever still lists them
        self.workloads: Mapping[TargetId, Workload] = {}
        self.resolution: Resolution | None = None
        self.promised: tuple[Line, ...] = ()  # by the agent before this one
        self._arbiter = Arbiter(kernel.quantise)
        self._epoch = 0
        self._resolve_at = -math.inf
        self._resolved_for: NodeFacts | None = None
        self._last: Report | None = None
        self._judged: tuple[float, int, Mapping[TargetId, Effective]] = (-math.inf, -1, {})
        self._yielded: dict[object, HeldSetting] = {}
        self._reloaded = False
        self._doubted: set[TargetId] = set()  # whose maker may have written them again

    @property
    def writes(self) -> bool:
        """Armed here, and not disarmed by whoever owns the node."""
        return self.armed and not self.document.spec.disarmed

    def tick(self, at: Instant) -> Report:
        """The whole ring, once."""
        begun = time.thread_time()
        self._entitle(at)
        self._look_for_drift(at)
        self.observer.sample(at.now, self.workloads.values())
        snap = self._snapshot(at)
        proposals = tuple(guard.propose(snap) for guard in self.guards)
        plan = self._arbiter.arbitrate(proposals, snap, self._held(at), originals=self.kernel.originals)
        outcome = self.kernel.apply(plan) if self.writes else Outcome.planned(plan)
        self._note_joined(outcome)
        return self._report(at, "tick", snap, plan, outcome, begun)

    def change(self, events: Sequence[WorkloadEvent], at: Instant) -> Report:
        """Workloads came, changed or went: their place and values at once, without sampling anyone.

        Controllers whose word does not follow from the tree speak at ticks; until then their last word stands.
        """
        begun = time.thread_time()
        if (quick := self._admit(events, at, begun)) is not None:
            return quick
        self._take(events)
        self._entitle(at, at_once=True)
        self._find_places()
        self._give_back_ancestors(events)
        snap = self._snapshot(at)
        proposals = tuple(guard.propose(snap) if guard.steady else guard.last for guard in self.guards)
        plan = self._arbiter.arbitrate(proposals, snap, self._held(at), originals=self.kernel.originals)
        outcome = self.kernel.apply(plan) if self.writes else Outcome.planned(plan)
        self._note_joined(outcome)
        return self._report(at, "change", snap, plan, outcome, begun)

    # ------------------------------------------------------------------ one arrival among many

    def _admit(self, events: Sequence[WorkloadEvent], at: Instant, begun: float) -> Report | None:
        """A few arrivals among many others, decided without the others; None where that cannot be done."""
        last, before, arrivals = self._last, self.resolution, self._few(events)
        if last is None or before is None or not arrivals:
            return None
        fresh = admit(arrivals, self.document, self.observer.facts, wall=at.wall, before=before)
        placed = [self._placed(w, fresh.entitlements[w.target].tier.value) for w in arrivals]
        now = replace(last.snap, now=at.now, wall=at.wall, settings=self.kernel.settings)
        snap = arrival.around(now, placed, fresh.entitlements)
        if snap is None:
            return None
        proposals = [p for controller in self.quick for p in controller.propose(snap)]
        plan = arrival.concerning(arbitrate(proposals, snap, self._held(at), self.kernel.quantise), placed)
        for workload in placed:
            self.kernel.track_also(workload)
        self.resolution, self.workloads = fresh, {**self.workloads, **{w.target: w for w in placed}}
        self._epoch += 1
        outcome = self.kernel.apply(plan)
        self._note_joined(outcome)
        whole = replace(plan, verdicts={**last.plan.verdicts, **plan.verdicts})
        extended = arrival.extended(now, snap, self.workloads, fresh.entitlements)
        return self._report(at, "change", extended, whole, outcome, begun)

    def _few(self, events: Sequence[WorkloadEvent]) -> list[Workload]:
        """The arrivals among the events where there is nothing else, and not many of them."""
        found = [e.workload for e in events if e.type == "ADDED" and e.workload is not None]
        known = len(self.workloads)
        if not self.writes or known < arrival.FEWEST_OTHERS or not 0 < len(found) == len(events) <= arrival.MOST:
            return []
        strange = any(w.handle.path or w.target in self.workloads for w in found)
        return [] if strange else found

    # ------------------------------------------------------------------ orders

    def obey(self, document: NodeDocument) -> None:
        self.document = document
        self._resolve_at = -math.inf

    def hold(self, holds: Iterable[Hold], released: Iterable[str] = ()) -> None:
        self.holds, self.released = tuple(holds), frozenset(released)

    def all_holds(self) -> tuple[Hold, ...]:
        """Those of the control plane and our own, each once, without those that ended here."""
        every = {h.metadata.name: h for h in (*self.document.holds, *self.holds)}
        return tuple(h for name, h in every.items() if name not in self.released)

    def reread(self) -> None:
        """Someone is known to have written, or to have been free to: the next tick reads every setting. Any thread."""
        self._reloaded = True

    def revert(self, force: bool = False, at: Instant | None = None) -> Outcome:
        """Every original value back; held settings stay unless forced."""
        held = frozenset() if at is None else frozenset(h.setting for h in self._held(at))
        return self.kernel.revert(force=force, held=held)

    # ------------------------------------------------------------------ steps

    def _take(self, events: Iterable[WorkloadEvent]) -> None:
        known = dict(self.workloads)
        for event in events:
            if event.workload is None:
                continue
            target = event.workload.target
            if not event.workload.handle.made:  # whoever made it is at work on it, and on the groups above
                self._doubted |= {target, *parts_of(event.workload), *groups_above(event.workload)}
            if event.type != "DELETED":
                known[target] = event.workload
            elif (gone := known.pop(target, None)) is not None and not gone.handle.made and self.writes:
                self.kernel.revert(only={target, *parts_of(gone)})
        self.workloads = known
        self._epoch += 1

    def _entitle(self, at: Instant, *, at_once: bool = False) -> None:
        """Who is entitled to what; derived again when something it depends on has moved."""
        facts, before = self.observer.facts, self.resolution
        settled = facts is self._resolved_for and at.now < self._resolve_at
        if settled and not at_once and before is not None and at.wall < before.until:
            return
        ledger = before.ledger if before else Ledger(NOTHING, self.promised)
        fresh = resolve(list(self.workloads.values()), self.document, facts, wall=at.wall, before=ledger)
        if before is None or fresh.entitlements != before.entitlements:
            self._epoch += 1
        self.resolution, self._resolved_for, self._resolve_at = fresh, facts, at.now + RESOLVE_S
        self._give_back_unchosen(fresh)

    def _give_back_unchosen(self, resolution: Resolution) -> None:
        """What nobody chooses any more is its maker's again: it gets its own values back, and is left alone."""
        if not self.writes:
            return
        ours = {s.target for s in self.kernel.originals}
        adopted = (w for w in self.workloads.values() if not w.handle.made)
        unchosen = (w for w in adopted if not resolution.entitlements[w.target].chosen)
        if left := ours.intersection(t for w in unchosen for t in (w.target, *parts_of(w))):
            self.kernel.revert(only=left)

    def _find_places(self) -> None:
        """A workload that has no cgroup yet gets one in its tier; the kernel is told where everyone is."""
        entitlements = self.resolution.entitlements if self.resolution else {}
        placed = {
            target: w
            if w.handle.path or not entitlements[target].chosen
            else self._placed(w, entitlements[target].tier.value)
            for target, w in self.workloads.items()
        }
        self.workloads = placed
        self.kernel.track(placed.values())

    def _give_back_ancestors(self, events: Iterable[WorkloadEvent]) -> None:
        """A group that is not ours was raised for workloads below; once the last of them is gone it is as it was."""
        gone = any(e.type == "DELETED" for e in events)
        if gone and self.armed and (abandoned := self.kernel.abandoned()):
            self.kernel.revert(only=abandoned)

    def _placed(self, w: Workload, tier: str) -> Workload:
        at = self.kernel.tree.path_for(tier, w.namespace, w.name)
        return replace(w, handle=Handle(path=at.path, unit=at.unit, paths=dict(at.paths)))

    def _snapshot(self, at: Instant) -> Snapshot:
        entitlements = self.resolution.entitlements if self.resolution else {}
        kernel = self.kernel
        return self.observer.snapshot(
            at.now, at.wall, self.workloads, entitlements, kernel.settings, kernel.support, self._epoch
        )

    def _held(self, at: Instant) -> tuple[HeldSetting, ...]:
        own = held(self.all_holds(), at.wall)
        return (*own, *(h for h in self._yielded.values() if h.expires > at.wall))

    def _look_for_drift(self, at: Instant) -> None:
        reloaded = {s.target for s in self.kernel.settings} if self._reloaded else ()
        if self._doubted:
            self.kernel.accept(self._doubted)
        self._reloaded, self._doubted = False, set()
        for drift in self.kernel.read_now(reloaded):
            self.kernel.forgive(drift.setting)  # a reload is no wish against ours: it is simply done again
        for drift in self.kernel.sweep(at.now):
            if drift.setting.target in self._set_by_runtimes():
                self.kernel.concede(drift.setting)
            if self.yields:
                why = "someone else set it, and the configuration yields to drift"
                hold = HeldSetting(drift.setting, None, at.wall + YIELD_S, "drift", why, breaks_reservation=True)
                self._yielded[drift.setting] = hold

    def _set_by_runtimes(self) -> set[TargetId]:
        """Pods, their containers and the groups above: a kubelet sets them anew, on a resize or at will."""
        pods = [w for w in self.workloads.values() if w.parts]
        return {target for w in pods for target in (w.target, *parts_of(w), *groups_above(w))}

    def _note_joined(self, outcome: Outcome) -> None:
        """A process is put in once; whatever became of it, the next run does not try again."""
        if outcome.dry:
            return
        tried = {change.target for change, _ in outcome.results if isinstance(change, Join)}
        if tried:
            self.workloads = {t: replace(w, pids=()) if t in tried else w for t, w in self.workloads.items()}
            self._epoch += 1

    def _report(self, at: Instant, cause: Cause, snap: Snapshot, plan: Plan, outcome: Outcome, begun: float) -> Report:
        if self.resolution is None:
            raise RuntimeError("a report before the first resolution")
        self._last = Report(
            at,
            cause,
            snap,
            plan,
            outcome,
            self.resolution,
            self._effective(snap, cause),
            self._held(at),
            {guard.name: guard.fault for guard in self.guards if guard.fault} | self.observer.failing,
            tuple(self.kernel.drift()),
            self.writes,
            time.thread_time() - begun,
        )
        return self._last

    def _effective(self, snap: Snapshot, cause: Cause) -> Mapping[TargetId, Effective]:
        """Judged at ticks: an arrival does not wait for it."""
        judged_at, epoch, found = self._judged
        if cause == "tick" and (epoch != snap.epoch or snap.now - judged_at >= EFFECTIVE_S):
            found = effective(replace(snap, settings=self.kernel.settings))
            self._judged = (snap.now, snap.epoch, found)
        return found


def groups_above(workload: Workload) -> frozenset[TargetId]:
    return ancestors(place_of(workload.handle))


def parts_of(workload: Workload) -> list[TargetId]:
    return [part(workload.namespace, workload.name, p.name) for p in workload.parts]
