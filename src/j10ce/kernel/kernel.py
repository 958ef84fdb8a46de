"""The facade over everything that changes the machine: apply a plan, give it all back, notice who else writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from j10ce.kernel.backend import Backend, Settles, Tree
from j10ce.kernel.drift import Contests, Drift
from j10ce.kernel.entry import Forgot
from j10ce.kernel.guard import Guard
from j10ce.kernel.held import Held
from j10ce.kernel.journal import Journal
from j10ce.kernel.routes import Routes, ancestors, place_of
from j10ce.kernel.structure import Structure
from j10ce.kernel.undo import Undo
from j10ce.kernel.values import Values
from j10ce.model.knob import Setting, Support, TargetId, Value, part
from j10ce.model.plan import (
    Applied,
    Change,
    Gone,
    Make,
    Outcome,
    Plan,
    Refused,
    Remove,
    Result,
    Structural,
    ValueChange,
)
from j10ce.model.workload import Handle, Workload


class Kernel:
    """Used from one thread. Never raises for what a machine may do: a vanished cgroup, a refusal, a full disk."""

    def __init__(
        self,
        tree: Tree,
        backends: Sequence[Backend],
        journal: Journal,
        *,
        clock: Callable[[], float] = time.monotonic,
        guard: Guard | None = None,
    ) -> None:
        self.tree = tree
        self._backends = backends
        self._journal = journal
        self._clock = clock
        self._routes = Routes(tree, backends)
        self._held = Held(self._routes)
        self._contests = Contests()
        self._values = Values(
            self._routes, journal, self._held, self._contests, guard or Guard.of_this_process(), clock
        )
        self._structure = Structure(tree, journal, lambda target: target in self._values.managed)
        self._handles: dict[TargetId, Handle] = {}
        for target, at in journal.places():
            tree.know(target, at)

    # ------------------------------------------------------------------ what is known

    @property
    def settings(self) -> Mapping[Setting, Value]:
        """The last read-back of every tracked setting; a value of its own, safe to keep."""
        return self._held.snapshot()

    @property
    def support(self) -> Mapping[str, Support]:
        return self._routes.support

    @property
    def originals(self) -> Mapping[Setting, Value]:
        """What every setting that we ever wrote held before."""
        return self._journal.values()

    @property
    def owners(self) -> Mapping[Setting, str]:
        """Who wrote last, for every setting that is ours."""
        return dict(self._journal.owners)

    def quantise(self, setting: Setting, value: Value) -> Value:
        return self._routes.quantise(setting, value)

    def track(self, workloads: Iterable[Workload]) -> None:
        """These workloads, their parts and the groups above are managed; others are forgotten, not reverted."""
        handles = {t: h for w in workloads for t, h in _handles(w)}
        groups = self._learn(handles, handles)
        for target in self._values.managed - groups - handles.keys():
            self._held.drop(target)
            self._contests.drop(target)
        self._handles, self._values.managed = handles, groups | handles.keys()

    def track_also(self, workload: Workload) -> None:
        """One more that is yet to be made, so that there is nothing to read; nor are the others looked at again."""
        handles = dict(_handles(workload))
        for target, handle in handles.items():
            self.tree.know(target, place_of(handle))
        groups = self._learn({}, handles)
        self._handles = {**self._handles, **handles}
        self._values.managed = self._values.managed | groups | handles.keys()

    def _learn(self, here: Mapping[TargetId, Handle], handles: Mapping[TargetId, Handle]) -> frozenset[TargetId]:
        """Read what is not known yet of those `here` and of the groups above `handles`, which are returned."""
        for target, handle in here.items():
            if self._handles.get(target) != handle:
                self.tree.know(target, place_of(handle))
                self._held.read(target)
        groups = frozenset[TargetId]().union(*(ancestors(place_of(h)) for h in handles.values()))
        for target in groups - self._values.managed:
            self._held.read(target)
        return groups

    def abandoned(self) -> frozenset[TargetId]:
        """Groups that are not ours, changed for workloads that are managed no longer."""
        targets = {s.target for s in self._journal.originals} - self._values.managed
        groups = ((t, self.tree.place(t)) for t in targets if t.startswith("group/"))
        return frozenset(t for t, at in groups if at is not None and not self.tree.owns(at))

    # ------------------------------------------------------------------ what is changed

    def apply(self, plan: Plan) -> Outcome:
        """Each change in its order, journalled before, read back after.

        Results of slow writes that came back since the last call follow those of the plan.
        """
        late = self._values.collect()
        results: list[tuple[Change, Result]] = []
        for target, run in groupby(plan.changes, key=_written):
            if target is None:
                results += ((c, self._restructure(c)) for c in run if not isinstance(c, ValueChange))
            else:
                changes = [c for c in run if isinstance(c, ValueChange)]
                results += zip(changes, self._values.write(changes), strict=True)
        return Outcome((*results, *late))

    def revert(
        self,
        *,
        only: Collection[TargetId] | None = None,
        force: bool = False,
        held: Collection[Setting] = frozenset(),
    ) -> Outcome:
        """Everything as it was before us, or what concerns `only`; what someone else changed since is reported."""
        late = self._values.collect()
        busy = self._values.slow.busy
        results = tuple(Undo(self._routes, self._journal, busy=busy, force=force, held=held).run(only))
        for backend in self._backends:
            if isinstance(backend, Settles):
                backend.settle()
        for target in {c.setting.target if isinstance(c, ValueChange) else c.target for c, _ in results}:
            self._contests.drop(target)
            self._held.read(target)
        return Outcome((*results, *late))

    def _restructure(self, change: Structural) -> Result:
        if isinstance(change, Remove) and self._values.slow.busy(change.target):
            return Refused(f"{change.target} has a slow write under way")  # the kernel would wait for it
        result = self._structure.change(change)
        if isinstance(change, Make) and isinstance(result, Applied):
            self._held.read(change.target)
        elif isinstance(change, Remove) and isinstance(result, Applied | Gone):
            self._held.drop(change.target)
            self._contests.drop(change.target)
        return result

    # ------------------------------------------------------------------ who else writes

    def sweep(self, now: float, budget: int = 1000) -> list[Drift]:
        """Re-read a part of the settings, so that all are re-read within 30 s. At most `budget` reads.

        Contested ones come every time: whoever writes again is answered, or yielded to, without delay.
        """
        self._values.collect()
        contested = [d.setting for d in self._contests.present(now) if d.setting in self._held.values][:budget]
        due = self._held.due(now, budget - len(contested))
        return self._compare(dict.fromkeys((*contested, *due)), now)

    def read_now(self, targets: Collection[TargetId]) -> list[Drift]:
        """Re-read these at once: someone is known to have written."""
        self._values.collect()
        return self._compare(self._held.of(targets), self._clock())

    def accept(self, targets: Collection[TargetId]) -> None:
        """Whoever made these is at work on them: what they wrote is no wish against ours, and goes back in the end."""
        for drift in self.read_now(targets):
            self._contests.forgive(drift.setting)
            self.concede(drift.setting)

    def concede(self, setting: Setting) -> None:
        """What was found there goes back in the end, not what was there before us: our next write puts it on record."""
        self._journal.note(Forgot(*setting))

    def drift(self) -> list[Drift]:
        """Every setting that someone else contests."""
        return self._contests.present(self._clock())

    def forgive(self, setting: Setting) -> None:
        """Re-assert a yielded setting after all."""
        self._contests.forgive(setting)

    def close(self) -> None:
        self._journal.close()

    def _compare(self, settings: Iterable[Setting], now: float) -> list[Drift]:
        drifts = []
        for setting in settings:
            found = None if self._values.slow.under_way(setting) else self._held.check(setting)
            ours = self._journal.ours(setting)
            if found is None or not ours:
                continue
            if found == ours[-1]:
                self._contests.settle(setting)
            else:
                drifts.append(self._contests.notice(setting, ours[-1], found, now))
        return drifts


def _written(change: Change) -> TargetId | None:
    return change.setting.target if isinstance(change, ValueChange) else None


def _handles(workload: Workload) -> Iterator[tuple[TargetId, Handle]]:
    """Of the workload and its parts, where they have a place."""
    named = ((part(workload.namespace, workload.name, p.name), p.handle) for p in workload.parts)
    for target, handle in ((workload.target, workload.handle), *named):
        if handle.path or handle.paths:
            yield target, handle
