"""The ring of one host: sample, snapshot, propose, arbitrate, apply, report.

Every method runs on the ring's thread. Events and orders come in, a Report goes out; nothing else is shared.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

import structlog
from msgspec import Struct
from msgspec.structs import replace

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.agent.ring import arrival
from j10ce.agent.ring.contained import Contained
from j10ce.agent.ring.holds import Read, holders, in_force, spread
from j10ce.control.controller import Controller
from j10ce.daemon.clock import Instant
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.drift import Drift
from j10ce.kernel.routes import ancestors
from j10ce.model.kinds import Hold
from j10ce.model.knob import TargetId, render
from j10ce.model.parts.reported import InterferenceReport
from j10ce.model.plan import HeldSetting, Join, LadderView, Outcome, Plan
from j10ce.model.quantity import Bytes
from j10ce.model.resource import NOTHING
from j10ce.model.snapshot import NodeFacts, Snapshot
from j10ce.model.workload import Workload
from j10ce.observe.observer import Observer
from j10ce.plan.actions import with_actions
from j10ce.plan.advice import advised
from j10ce.plan.arbiter import Arbiter, arbitrate
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.effect.effective import Effective, effective
from j10ce.policy.effect.foreign_claims import held_beside, kept_above, kept_for_nobody
from j10ce.policy.entitlement.ledger import NO_BYTES, Ledger, Line
from j10ce.policy.entitlement.resolve import Beside, Resolution, admit, resolve
from j10ce.policy.lifetime import over
from j10ce.policy.strategy import merged

Cause = Literal["tick", "change"]
EFFECTIVE_S: Final = 5.0  # how often the protection in force is judged while nothing moves
RESOLVE_S: Final = 30.0  # how often entitlements are derived again while nothing moves: wall clocks jump
log = structlog.get_logger()
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
    interference: tuple[InterferenceReport, ...] = ()  # who suffers from whom
    ladders: tuple[LadderView, ...] = ()  # how far controllers have gone that go in stages


class Agent:
    def __init__(
        self,
        kernel: Kernel,
        observer: Observer,
        guards: Sequence[Contained],
        document: NodeDocument,
        *,
        quick: Sequence[Controller] = (),
        own: Callable[[Snapshot], Bytes] = lambda _: NO_BYTES,
        promised: tuple[Line, ...] = (),
        armed: bool = False,
        yields: bool = False,
    ) -> None:
        """`promised`: by the agent before this one. `yields`: a setting is left to whoever else writes it."""
        self.kernel = kernel
        self.observer = observer
        self.decide_with(guards, quick, own)
        self.document, self.strategy = document, observer.heed(merged(document.strategies))
        self.lent: Mapping[str, float] = {}  # by the control plane's word; what it does not say is not known
        self.armed = armed
        self.yields = yields
        self.holds: tuple[Hold, ...] = ()  # made on this host; those of the document come on top
        self._read = Read()
        self.released: frozenset[str] = frozenset()  # names of holds that ended on this host, whoever still lists them
        self.workloads: Mapping[TargetId, Workload] = {}
        self.resolution: Resolution | None = None
        self.promised = promised
        self._arbiter = Arbiter(kernel.quantise)
        self._epoch = 0
        self._resolve_at = -math.inf
        self._resolved_for: tuple[NodeFacts, Beside] | None = None
        self._looked: tuple[object, ...] = (None,) * 6  # by the last answer of `beside`
        self._beside = Beside()
        self._last: Report | None = None
        self._judged: tuple[float, int, Mapping[TargetId, Effective]] = (-math.inf, -1, {})
        self._judged_by: tuple[object, ...] = ()
        self._yielded: dict[object, HeldSetting] = {}
        self._reloaded = False
        self._doubted: set[TargetId] = set()  # whose maker may have written them again

    def decide_with(
        self, guards: Sequence[Contained], quick: Sequence[Controller], own: Callable[[Snapshot], Bytes]
    ) -> None:
        """`quick` decide an arrival, and never see the whole tree; `own`: what the agent would keep for itself.

        Any thread: a run sees the guards of before or those of after.
        """
        self.quick, self.own, self.guards = quick, own, list(guards)

    @property
    def writes(self) -> bool:
        """Armed here, and not disarmed by whoever owns the node."""
        return self.armed and not self.document.spec.disarmed

    def tick(self, at: Instant) -> Report:
        """The whole ring, once."""
        begun = time.thread_time()
        if self._entitle(at):
            self._find_places()
        self._look_for_drift(at)
        self.observer.sample(at.now, self.workloads.values(), {t for guard in self.guards for t in guard.attends})
        return self._report(at, "tick", *self._decide(at, "tick"), begun)

    def change(self, events: Sequence[WorkloadEvent], at: Instant) -> Report:
        """Workloads came, changed or went: their place and values at once, without sampling anyone.

        Controllers whose word does not follow from the tree speak at ticks; until then their last word stands.
        Whatever it raises, who went has gone, and nobody else has come.
        """
        begun = time.thread_time()
        self._heed(self.kernel.look_above(at.now), at)
        if (quick := self._admit(events, at, begun)) is not None:
            return quick
        self._see_resized(events)
        gone, here = arrival.in_the_end(events)
        left = {t: w for t, w in self.workloads.items() if t not in gone}
        self._doubt(events)
        try:
            ended = self._follow(left, at)[2] if gone and here else None  # they make room before others ask for it
            snap, plan, outcome = self._follow({**left, **here}, at)
        except Exception:
            self.workloads, self._resolve_at = left, -math.inf
            self._epoch += 1
            raise
        results = (*ended.results, *outcome.results) if ended else outcome.results
        return self._report(at, "change", snap, plan, replace(outcome, results=results), begun)

    def _follow(self, workloads: Mapping[TargetId, Workload], at: Instant) -> tuple[Snapshot, Plan, Outcome]:
        """What follows from these being the workloads."""
        self.workloads = workloads
        self._epoch += 1
        self._entitle(at, at_once=True)
        self._find_places()
        return self._decide(at, "change")

    def _decide(self, at: Instant, cause: Cause) -> tuple[Snapshot, Plan, Outcome]:
        """From the tree as it is to what became of the plan."""
        snap = self._snapshot(at)
        asked = cause == "tick"
        proposals = tuple(guard.propose(snap) if asked or guard.steady else guard.last for guard in self.guards)
        plan = self._arbiter.arbitrate(proposals, snap, self._held(at), originals=self.kernel.owed)
        if asked:  # deeds follow from what was measured, never from who came
            plan = with_actions(plan, [a for guard in self.guards for a in guard.act(snap)], snap, self._held(at))
        if not self.writes:
            self.kernel.thaw()
        outcome = self.kernel.apply(plan, at.wall) if self.writes else Outcome.planned(plan)
        self._note_joined(outcome)
        return snap, plan, outcome

    def _see_resized(self, events: Iterable[WorkloadEvent]) -> None:
        """What its maker wrote while a pod was awake is read before it is idle again: then its weight shows no more."""
        before = self.workloads
        settled = (e.workload for e in events if e.workload is not None and not e.workload.resizing)
        if resized := {w.target for w in settled if w.target in before and before[w.target].resizing}:
            self.kernel.accept(resized)

    # ------------------------------------------------------------------ one arrival among many

    def _admit(self, events: Sequence[WorkloadEvent], at: Instant, begun: float) -> Report | None:
        """A few arrivals among many others, decided without the others; None where that cannot be done."""
        last, before, arrivals = self._last, self.resolution, self._few(events)
        if last is None or before is None or not arrivals or last.outcome.refused():
            return None  # where something was refused, the kernel may keep what the book has given away
        said, facts = self.strategy, self.observer.facts
        fresh = admit(arrivals, self.document, facts, wall=at.wall, before=before, strategy=said)
        placed = [self._placed(w, fresh.entitlements[w.target].tier.value) for w in arrivals]
        settings, strategy = self.kernel.settings, said.strategy
        now = replace(last.snap, now=at.now, wall=at.wall, settings=settings, strategy=strategy)
        snap = arrival.around(now, placed, fresh.entitlements)
        if snap is None:
            return None
        proposals = [p for controller in self.quick for p in controller.propose(snap)]
        arrived = [fresh.entitlements[w.target] for w in placed]
        plan = arrival.concerning(arbitrate(proposals, snap, self._held(at), self.kernel.quantise), arrived)
        whole = replace(plan, verdicts={**last.plan.verdicts, **plan.verdicts})
        workloads = {**self.workloads, **{w.target: w for w in placed}}
        extended = arrival.extended(now, snap, workloads, fresh.entitlements)
        short = {t for t, e in last.effective.items() if e.cpu_reason}
        if not arrival.holds(extended, whole, arrived, short):
            return None
        for workload in placed:
            self.kernel.track_also(workload)
        self.resolution, self.workloads = fresh, workloads
        self._epoch += 1
        outcome = self.kernel.apply(plan)
        self._note_joined(outcome)
        extended = replace(extended, workloads=self.workloads)
        return self._report(at, "change", extended, whole, outcome, begun)

    def _few(self, events: Sequence[WorkloadEvent]) -> list[Workload]:
        """The arrivals among the events where there is nothing else, and not many of them."""
        arrivals = [e.workload for e in events if e.type == "ADDED" and e.workload is not None]
        known = len(self.workloads)
        if not self.writes or known < arrival.FEWEST_OTHERS or not 0 < len(arrivals) == len(events) <= arrival.MOST:
            return []
        strange = any(w.handle.path or w.target in self.workloads for w in arrivals)
        return [] if strange else arrivals

    # ------------------------------------------------------------------ orders

    def obey(self, document: NodeDocument) -> None:
        self.document, before, self.strategy = document, self.strategy, self.observer.heed(merged(document.strategies))
        self._epoch += self.strategy != before
        self._resolve_at = -math.inf

    def hold(self, holds: Iterable[Hold], released: Iterable[str] = ()) -> None:
        self.holds, self.released = tuple(holds), frozenset(released)

    def all_holds(self) -> tuple[Hold, ...]:
        """Those of the control plane and our own, each once, without those that ended here."""
        return in_force(self.document.holds, self.holds, self.released)

    def reread(self) -> None:
        """Someone is known to have written, or to have been free to: the next tick reads every setting. Any thread."""
        self._reloaded = True

    def revert(self, at: Instant, *, force: bool = False) -> Outcome:
        """Every original value back; held settings stay unless forced."""
        self._epoch += 1
        return self.kernel.revert(force=force, held=holders(self._held(at)))

    # ------------------------------------------------------------------ steps

    def _doubt(self, events: Iterable[WorkloadEvent]) -> None:
        """Whoever made a workload that is not ours is at work on it, and on the groups above."""
        adopted = (e.workload for e in events if e.workload is not None and not e.workload.handle.made)
        for workload in adopted:
            self._doubted |= {workload.target, *workload.part_targets, *ancestors(workload.handle)}

    def _entitle(self, at: Instant, *, at_once: bool = False) -> bool:
        """Who is entitled to what; derived again when something it depends on has moved. Whether it is another."""
        if self.resolution is None:
            self.kernel.track(self.workloads.values())  # what an agent before this one left behind is in the book, too
        facts, beside, before = self.observer.facts, self.beside(at), self.resolution
        settled = self._resolved_for == (facts, beside) and at.now < self._resolve_at
        if settled and not at_once and before is not None and at.wall < before.until:
            return False
        ledger = before.ledger if before else Ledger(NOTHING, self.promised)
        workloads = list(self.workloads.values())
        said = self.strategy
        fresh = resolve(workloads, self.document, facts, wall=at.wall, before=ledger, beside=beside, strategy=said)
        changed = before is None or fresh.entitlements != before.entitlements
        self._epoch += changed or self._resolved_for is None or self._resolved_for[0] != facts
        self.resolution, self._resolved_for, self._resolve_at = fresh, (facts, beside), at.now + RESOLVE_S
        return changed

    def beside(self, at: Instant) -> Beside:
        """In the tree of the last look; before the first one nothing is promised without a look.

        Settings and originals are of one instant: what has just been given back is among the former alone.
        """
        last, plan = (self._last.snap, self._last.plan) if self._last else (self._snapshot(at), Plan())
        settings, originals, kept = self.kernel.settings, self.kernel.originals, self.kernel.kept()
        looked = (last.groups, last.entitlements, settings, originals, self.workloads, plan)
        if any(a is not b for a, b in zip(looked, self._looked, strict=True)):
            entitled = {t: e for t, e in last.entitlements.items() if t in self.workloads}  # who left claims nothing
            snap = replace(last, settings=settings, entitlements=entitled)
            lent = advised(plan, "memory.min")  # goes as soon as a floor needs it
            amounts = kept_above(snap, originals) | kept
            workloads = tuple(sorted((t, Bytes(int(amount))) for t, amount in amounts.items() if t not in lent))
            raised = lent.union(*(last.groups.ancestors(t) for t in lent if t in last.groups.by_target))
            groups = kept_for_nobody(snap, {s: v for s, v in originals.items() if s.target not in raised}, kept)
            self._looked, self._beside = looked, Beside(held_beside(snap, originals), NO_BYTES, workloads, groups)
        return self._beside._replace(agent=self.own(last))

    def _find_places(self) -> None:
        """A workload that has no cgroup yet gets one in its tier; the kernel learns where everyone is."""
        entitlements = self.resolution.entitlements if self.resolution else {}
        placed = {
            target: w
            if w.handle.path or not entitlements[target].chosen
            else self._placed(w, entitlements[target].tier.value)
            for target, w in self.workloads.items()
        }
        self.workloads = placed
        self.kernel.track(placed.values())

    def _placed(self, w: Workload, tier: str) -> Workload:
        return replace(w, handle=self.kernel.tree.path_for(tier, w.namespace, w.name))

    def _snapshot(self, at: Instant) -> Snapshot:
        entitlements = self.resolution.entitlements if self.resolution else {}
        kernel = self.kernel
        snap = self.observer.snapshot(
            at.now,
            at.wall,
            self.workloads,
            entitlements,
            kernel.settings,
            kernel.support,
            self._epoch,
            kernel.remains(),
        )
        snap = replace(snap, originals=kernel.originals, strategy=self.strategy.strategy, pieces=kernel.pieces)
        held = frozenset(h.setting for h in self._held(at) if h.value is None)
        return replace(snap, lent=self.lent, held=held, done=kernel.done)

    def _held(self, at: Instant) -> tuple[HeldSetting, ...]:
        own = spread(self._read.held(self.all_holds(), at.wall), self.kernel.settings.keys())
        return (*own, *(h for h in self._yielded.values() if not over(h, at.wall)))

    def _look_for_drift(self, at: Instant) -> None:
        reloaded = {s.target for s in self.kernel.settings} if self._reloaded else ()
        if self._doubted:
            self.kernel.accept(self._doubted)
        self._reloaded, self._doubted = False, set()
        for drift in self.kernel.read_now(reloaded):
            self.kernel.forgive(drift.setting)  # a reload is no wish against ours: it is simply done again
        self._heed(self.kernel.sweep(at.now), at)

    def _heed(self, drifts: Iterable[Drift], at: Instant) -> None:
        for drift in drifts:
            ours, theirs = (render(drift.setting.knob, value) for value in (drift.ours, drift.theirs))
            log.warning(
                "setting.drifted", setting=str(drift.setting), ours=ours, theirs=theirs, put_back=drift.reasserted
            )
            self._judged = (-math.inf, -1, self._judged[2])  # what it protected is judged again
            if drift.setting.target in self._set_by_runtimes():
                self.kernel.concede(drift.setting)
            if self.yields:
                why = "someone else set it, and the configuration yields to drift"
                hold = HeldSetting(drift.setting, None, at.wall + YIELD_S, "drift", why, breaks_reservation=True)
                self._yielded[drift.setting] = hold

    def _set_by_runtimes(self) -> set[TargetId]:
        """Pods, their containers and the groups above: a kubelet sets them anew, on a resize or at will."""
        pods = [w for w in self.workloads.values() if w.parts]
        return {target for w in pods for target in (w.target, *w.part_targets, *ancestors(w.handle))}

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
            tuple(report for guard in self.guards for report in guard.seen),
            tuple(ladder for guard in self.guards for ladder in guard.ladders),
        )
        return self._last

    def _effective(self, snap: Snapshot, cause: Cause) -> Mapping[TargetId, Effective]:
        """Judged at ticks: an arrival does not wait for it."""
        judged_at, epoch, judged = self._judged
        if cause == "tick" and (epoch != snap.epoch or snap.now - judged_at >= EFFECTIVE_S):
            inputs = (snap.epoch, snap.groups, dict(self.kernel.settings), {*self.kernel.counted_late})
            if judged_at == -math.inf or inputs != self._judged_by:  # figures of the tree move twice as seldom
                judged = effective(replace(snap, settings=self.kernel.settings), self.kernel.counted_late)
            self._judged, self._judged_by = (snap.now, snap.epoch, judged), inputs
        return judged
