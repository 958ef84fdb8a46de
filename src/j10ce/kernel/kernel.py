"""The facade over everything that changes the machine: apply a plan, give it all back, notice who else writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from msgspec.structs import replace

from j10ce.errors import QosError
from j10ce.kernel.actions import Actions
from j10ce.kernel.backend import Backend, Estate, Settles, Tree
from j10ce.kernel.guard import Guard
from j10ce.kernel.record.drift import Contests, Drift
from j10ce.kernel.record.entry import Forgot
from j10ce.kernel.record.held import Held
from j10ce.kernel.record.journal import Journal
from j10ce.kernel.record.tending import Tending
from j10ce.kernel.record.undo import Undo
from j10ce.kernel.routes import Routes, ancestors, controller_of
from j10ce.kernel.slow import SlowWrites
from j10ce.kernel.structure import Structure
from j10ce.kernel.values import Values
from j10ce.model.knob import Deed, Setting, Support, TargetId, Value, group
from j10ce.model.plan import (
    Applied,
    Change,
    Gone,
    Make,
    Outcome,
    Pending,
    Plan,
    Refused,
    Remove,
    Result,
    Structural,
    Unchanged,
    ValueChange,
)
from j10ce.model.snapshot import Piece
from j10ce.model.workload import Handle, Workload

# What a group means for all inside.
PASSED_DOWN: Final = (
    "memory.min", "memory.low", "memory.max", "memory.high", "cpu.weight", "cpu.max", "cpuset.cpus",
)  # fmt: skip


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
        estates: Sequence[Estate] = (),
        slow: SlowWrites | None = None,
    ) -> None:
        self.tree = tree
        self._backends = backends
        self._journal = journal
        self._clock = clock
        self._routes = Routes(tree, backends, estates)
        self._held = Held(self._routes, journal.owners)
        self._contests = Contests()
        self._values = Values(
            self._routes,
            journal,
            self._held,
            self._contests,
            guard or Guard.of_this_process(),
            clock,
            slow or SlowWrites(),
        )
        self._structure = Structure(self._routes, journal, lambda target: target in self._values.managed)
        self._handles: dict[TargetId, Handle] = {}
        self._read: frozenset[TargetId] = frozenset()  # whose settings are known, managed or still to be given back
        self._needed: frozenset[TargetId] = frozenset()  # managed workloads and the groups above them
        self._kept: tuple[object, object, dict[TargetId, float]] = (None, None, {})
        self._left: set[Setting] = set()  # someone else made something of them: not given back unless forced
        self._support = {**self._routes.support, **{deed.value: s for deed, s in self._routes.deeds.items()}}
        self._actions = Actions(self._routes, journal, self._values.slow)
        for target, at in journal.places():
            self._routes.know(target, at)
        self._tending = Tending(self._routes, journal, self._contests)

    # ------------------------------------------------------------------ what is known

    @property
    def settings(self) -> Mapping[Setting, Value]:
        """The last read-back of every tracked setting; a value of its own, safe to keep."""
        return self._held.snapshot()

    @property
    def support(self) -> Mapping[str, Support]:
        """Of every knob, and of every deed by its name."""
        return self._support

    @property
    def done(self) -> Mapping[tuple[Deed, TargetId], float]:
        """When each deed was done last, by the wall clock."""
        return {what: did.wall for what, did in self._journal.did.items()}

    @property
    def pieces(self) -> Mapping[TargetId, Piece]:
        """The targets beside cgroups that are there."""
        return {t: Piece(t, t in self._journal.made) for t in self._routes.beside_cgroups()}

    @property
    def originals(self) -> Mapping[Setting, Value]:
        """What every setting that we ever wrote held before."""
        return self._journal.values()

    @property
    def owed(self) -> Mapping[Setting, Value]:
        """The originals that go back once nobody wants anything else: without what someone else has made his own."""
        return {s: v for s, v in self.originals.items() if s not in self._left} if self._left else self.originals

    @property
    def owners(self) -> Mapping[Setting, str]:
        """Who wrote last, for every setting that is ours."""
        return dict(self._journal.owners)

    @property
    def counted_late(self) -> frozenset[TargetId]:
        """Groups in which we enabled the memory controller: what was there before stays charged to the group itself."""
        return frozenset(t for t, e in self._journal.enabled.items() if "memory" in e.controllers)

    def quantise(self, setting: Setting, value: Value) -> Value:
        return self._held.foreseen(setting, self._routes.quantise(setting, value))

    def track(self, workloads: Iterable[Workload]) -> None:
        """These workloads, their parts and the groups above are managed; what we did to others stays known as well."""
        handles = {t: h for w in workloads for t, h in _handles(w)}
        self._rename(handles, handles)
        self._hand_over(handles)
        groups = self._learn(handles, handles)
        beside = self._routes.beside_cgroups()
        for target in [t for t in self._read if not self._routes.in_tree(t) and t not in beside]:
            self._held.drop(target)  # someone else removed it: what it held is to be written again
        ours = self._journal.targets().keys() | beside
        for target in ours - groups - handles.keys() - self._read:
            self._held.read(target)
        known = groups | handles.keys() | ours
        for target in self._read - groups - handles.keys():
            self._contests.drop(target)
        for target in self._read - known:
            self._held.drop(target)
        self._handles, self._read, self._values.managed = handles, known, known
        self._needed = groups | handles.keys()

    def track_also(self, workload: Workload) -> None:
        """One more that is yet to be made, so that there is nothing to read; nor are the others looked at again."""
        handles = dict(_handles(workload))
        self._rename(handles, {**self._handles, **handles})
        for target, handle in handles.items():
            self.tree.know(target, handle)
        groups = self._learn({}, handles)
        self._handles = {**self._handles, **handles}
        self._read = self._values.managed = self._read | groups | handles.keys()
        self._needed = self._needed | groups | handles.keys()

    def remains(self) -> dict[TargetId, Handle]:
        """What we made or changed for workloads that are not managed, and the groups above them; not our own groups.

        It is in the plan until it is as it was, or removed.
        """
        left = {}
        for target, at in self._journal.targets().items():
            if target in self._needed or not self._routes.in_tree(target):
                continue
            owned, owed = self.tree.owns(at), self._journal.changed(target) - self._left
            if self._vanished(at, owed):
                self._journal.note(Forgot(target))  # someone else removed it, and there is nothing to give back to
            elif owed or (owned and not target.startswith("group/")):
                left[target] = replace(at, made=owned)
        return left

    def _vanished(self, at: Handle, owed: Collection[Setting]) -> bool:
        """Gone from every hierarchy; a unit that is down still has the values that systemd keeps for it."""
        gone = all(self.tree.identity(at, c) is None for c in {"cpu", *map(controller_of, owed)})
        return gone and all(map(self._nowhere, owed))

    def _nowhere(self, setting: Setting) -> bool:
        try:
            return self._routes.read(setting) is None
        except QosError:
            return False  # nobody knows

    def kept(self) -> dict[TargetId, float]:
        """memory.min of each workload above what was there before us."""
        held, targets = self._held.snapshot(), self._journal.targets()
        if self._kept[0] is not held or self._kept[1] is not targets:
            self._kept = (held, targets, dict(self._keeps(held, targets)))
        return self._kept[2]

    def _keeps(self, held: Mapping[Setting, Value], targets: Iterable[TargetId]) -> Iterator[tuple[TargetId, float]]:
        for target in targets:
            s = Setting(target, "memory.min")
            before, now = self._journal.original(s), held.get(s)
            if isinstance(before, float) and isinstance(now, float) and target.startswith("workload/") and now > before:
                yield target, now - before

    def _learn(self, here: Mapping[TargetId, Handle], handles: Mapping[TargetId, Handle]) -> frozenset[TargetId]:
        """Read what is not known yet of those `here` and of the groups above `handles`, which are returned."""
        for target, handle in here.items():
            if self._handles.get(target) != handle:
                self.tree.know(target, handle)
                self._held.read(target)
        groups = frozenset[TargetId]().union(*map(ancestors, handles.values()))
        for target in groups - self._read:
            self._held.read(target)
        return groups

    def _rename(self, handles: Mapping[TargetId, Handle], managed: Collection[TargetId]) -> None:
        """A name that comes back elsewhere leaves what it had to the group that stands there.

        A cgroup that gets another name before its values are back brings its originals along.
        """
        for target, handle in handles.items():
            if self._handles.get(target) == handle:
                continue
            at = self._journal.targets().get(target)
            if at is not None and not _at(at, handle):
                for group in self._journal.rename(target):
                    self.tree.know(group, Handle(group.removeprefix("group/")))
            for other in [] if handle.made else self._departed_at(handle, managed):
                self._journal.rename(other, target)

    def _departed_at(self, handle: Handle, managed: Collection[TargetId]) -> list[TargetId]:
        """What else the journal calls that cgroup: another workload, or a group above others."""
        known = ((t, at) for t, at in self._journal.targets().items() if self._routes.in_tree(t))
        return [t for t, at in known if t not in managed and _at(at, handle)]

    def _hand_over(self, handles: Mapping[TargetId, Handle]) -> None:
        """What a workload that is gone leaves in a cgroup above others is that group's to keep, and to give back."""
        above = frozenset[TargetId]().union(*map(ancestors, handles.values()))
        for target, at in list(self._journal.targets().items()):
            if target not in handles and target not in above and group(at.path) in above:
                for left in self._journal.rename(target):
                    self.tree.know(left, Handle(left.removeprefix("group/")))
                    self._held.read(left)

    def _drop(self, target: TargetId) -> None:
        self._held.drop(target)
        self._contests.drop(target)

    # ------------------------------------------------------------------ what is changed

    def apply(self, plan: Plan, wall: float = 0.0) -> Outcome:
        """Each change in its order, journalled before, read back after; then the deeds, which happen at `wall`.

        Results of slow writes that came back since the last call follow those of the plan, and what newcomers refused.
        """
        late: list[tuple[Change, Result]] = [*self._values.collect()]
        done = self._actions.collect()
        results: list[tuple[Change, Result]] = []
        for target, run in groupby(plan.changes, key=_written):
            if target is None:
                results += ((c, self._restructure(c)) for c in run if not isinstance(c, ValueChange))
            else:
                results += self._write([c for c in run if isinstance(c, ValueChange)])
        if any(isinstance(c, ValueChange) and c.ends for c, _ in results):
            self._settle()
        late += self._tending.run(self._clock())
        return Outcome((*results, *late), deeds=(*self._actions.perform(plan.actions, wall), *done))

    def thaw(self) -> None:
        """Whoever we froze runs on, and nobody is real-time: nobody will be there, or allowed, to see to it."""
        for setting in [s for s in self.originals if s.knob in ("cgroup.freeze", "sched.realtime")]:
            self._give_back(ValueChange(setting, None, 0.0, "thaw", "nobody would do so later", ends=True))

    def revert(self, *, force: bool = False, held: Mapping[Setting, str] | None = None) -> Outcome:
        """Everything as it was before us; what is held, by whose word, or was changed by others since is reported."""
        late = self._values.collect()
        self._left.clear()
        results = tuple(Undo(self._routes, self._journal, busy=self._values.slow.busy, force=force, held=held).run())
        self._settle()
        for target in {c.setting.target if isinstance(c, ValueChange) else c.target for c, _ in results}:
            self._contests.drop(target)
            self._held.read(target)
        return Outcome((*results, *late))

    def _write(self, changes: Sequence[ValueChange]) -> Iterator[tuple[Change, Result]]:
        """Of one target, in their order."""
        for ends, run in groupby(changes, key=lambda c: c.ends):
            those = list(run)
            written = [self._give_back(c) for c in those] if ends else self._values.write(those)
            self._left.difference_update(c.setting for c in those if not ends)
            yield from zip(those, written, strict=True)

    def _give_back(self, change: ValueChange) -> Result:
        setting = change.setting
        if self._values.slow.busy(setting.target):
            return Pending()
        undo = Undo(self._routes, self._journal, busy=self._values.slow.busy)
        result = undo.give_back(setting)
        self._left |= undo.theirs
        if isinstance(result, Applied | Unchanged):
            self._held.take(setting, result.value)
            self._values.take_along(setting, change.owner)
        elif isinstance(result, Gone):
            self._held.lose(setting)
        self._contests.forgive(setting)
        return result

    def _settle(self) -> None:
        for backend in self._backends:
            if isinstance(backend, Settles):
                backend.settle()

    def _restructure(self, change: Structural) -> Result:
        if isinstance(change, Remove) and self._values.slow.busy(change.target):
            return Refused(f"{change.target} has a slow write under way")  # the kernel would wait for it
        result = self._structure.change(change)
        if isinstance(change, Make) and isinstance(result, Applied):
            self._held.read(change.target)
        elif isinstance(change, Remove) and isinstance(result, Applied | Gone):
            self._drop(change.target)
        return result

    # ------------------------------------------------------------------ who else writes

    def sweep(self, now: float, budget: int = 1000) -> list[Drift]:
        """Re-read a part of the settings, so that all are re-read within 30 s. At most `budget` reads.

        Contested ones come every time: whoever writes again is answered, or yielded to, without delay. So does what
        groups pass down: without its cover a floor is worth nothing, nor idleness in a heavy group.
        """
        above = self.look_above(now)
        contested = [d.setting for d in self._contests.present(now) if d.setting in self._held.values][:budget]
        due = self._held.due(now, budget - len(contested))
        return above + self._compare(dict.fromkeys((*contested, *due)), now)

    def look_above(self, now: float) -> list[Drift]:
        """Re-read what groups above workloads pass down to them."""
        self._values.collect()
        workloads = {group(handle.path) for handle in self._handles.values()}  # above their parts, but known by name
        groups = (t for t in self._values.managed - workloads if t.startswith("group/"))
        every = (Setting(target, knob) for target in groups for knob in PASSED_DOWN)
        return self._compare((s for s in every if s in self._held.values), now)

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
        """What stands there goes back in the end, not what was there before us: our next write puts it on record."""
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
            present = None if self._values.slow.under_way(setting) else self._held.check(setting)
            ours = self._journal.ours(setting)
            if present is None or not ours:
                continue
            if present == ours[-1]:
                self._contests.settle(setting)
            else:
                drifts.append(self._contests.notice(setting, ours[-1], present, now))
        return drifts


def _written(change: Change) -> TargetId | None:
    return change.setting.target if isinstance(change, ValueChange) else None


def _at(at: Handle, handle: Handle) -> bool:
    return (at.path, at.paths) == (handle.path, handle.paths)


def _handles(workload: Workload) -> Iterator[tuple[TargetId, Handle]]:
    """Of the workload and its parts, where they have a place."""
    parts = zip(workload.part_targets, (p.handle for p in workload.parts), strict=True)
    return ((t, at) for t, at in ((workload.target, workload.handle), *parts) if at.path or at.paths)
