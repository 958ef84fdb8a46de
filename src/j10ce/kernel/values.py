"""Writing values: guard, journal, write, read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from j10ce.kernel.backend import Backend, attempt
from j10ce.kernel.guard import Guard, GuardedTarget, claims_of_the_machine
from j10ce.kernel.record.coupling import coupled, foretold, note_side_effect
from j10ce.kernel.record.drift import Contests
from j10ce.kernel.record.entry import Forgot, Original, to_spelled, wrote
from j10ce.kernel.record.held import Held
from j10ce.kernel.record.journal import Journal
from j10ce.kernel.routes import Routes
from j10ce.kernel.slow import SlowWrites
from j10ce.model.knob import KNOBS, Setting, TargetId, Unit
from j10ce.model.plan import Applied, Gone, Pending, Refused, Result, ValueChange
from j10ce.model.workload import Handle

Answer = Applied | Refused | Gone


class Ready(NamedTuple):
    """A change that passed the guard and stands in the journal."""

    change: ValueChange
    at: Handle
    backend: Backend


class Values:
    def __init__(
        self,
        routes: Routes,
        journal: Journal,
        held: Held,
        contests: Contests,
        guard: Guard,
        clock: Callable[[], float],
        slow: SlowWrites,
    ) -> None:
        self._routes = routes
        self._journal = journal
        self._held = held
        self._contests = contests
        self._guard = guard
        self._clock = clock
        self.slow = slow
        self.managed: frozenset[TargetId] = frozenset()

    def write(self, changes: Sequence[ValueChange]) -> list[Result]:
        """Changes of one target, in their order."""
        results: dict[Setting, Result] = {}
        ready: list[Ready] = []
        for change in changes:
            prepared = attempt(partial(self._prepare, change))
            if isinstance(prepared, Ready):
                ready.append(prepared)
            else:
                results[change.setting] = self._finish(change, prepared) if isinstance(prepared, Gone) else prepared
        for backend, run in groupby(ready, key=lambda r: r.backend):
            results |= self._write_run(backend, list(run))
        return [results[change.setting] for change in changes]

    def collect(self) -> list[tuple[ValueChange, Result]]:
        """Slow writes that came back."""
        return [(change, self._finish(change, answer)) for change, answer in self.slow.finished()]

    def _prepare(self, change: ValueChange) -> Ready | Result:
        setting = change.setting
        at = self._routes.place(setting.target)
        if at is None:
            return Gone()
        backend = self._routes.backend(setting)
        if backend is None:
            return Refused(self._routes.missing(setting))
        if self.slow.same(change):
            return Pending()
        if self._routes.identity(setting, at) is None:
            return Gone()
        why = self._guard.objection(change, at, self._seen(change, at))
        if why := why or self._contests.answer(setting, self._clock()):
            return Refused(why)
        return self._journalled(change, at, backend) or Ready(change, at, backend)

    def _journalled(self, change: ValueChange, at: Handle, backend: Backend) -> Refused | None:
        """What was there, and what we are about to write; refused when either cannot be put on record."""
        setting, other = change.setting, coupled(change.setting)
        fresh = [e for s in (other, setting) if s and (e := self._original(s, at))]
        if setting not in self._journal.originals and all(e.setting != setting for e in fresh):
            return Refused(_unreadable(setting, at))
        ours = wrote(setting, backend.quantise(setting, change.new), change.owner)
        try:
            self._journal.add(*fresh, ours, *foretold(setting, change.new, change.owner))
        except OSError as e:
            return Refused(f"the journal cannot take {setting}: {e.strerror}; nothing was written")
        return None

    def _original(self, setting: Setting, at: Handle) -> Original | None:
        """Recorded once per cgroup; another cgroup at the same path is another story."""
        identity, known = self._routes.identity(setting, at), self._journal.originals.get(setting)
        backend = self._routes.backend(setting)
        if identity is None or backend is None or (known and known.identity == identity):
            return None
        text, value = backend.save(setting, at), backend.read(setting, at)
        if text is None or value is None:
            return None
        via = self._routes.via(setting, backend)
        return Original(*setting, at, identity, via, text, to_spelled(value))

    def _write_run(self, backend: Backend, run: list[Ready]) -> dict[Setting, Result]:
        batched = self._routes.batched(backend)
        if batched is None:
            return {r.change.setting: self._write_one(r) for r in run}
        at_once = [r for r in run if not self._reclaims(r)]
        results = {r.change.setting: self._write_one(r) for r in run if r not in at_once}
        if at_once:
            answers = batched.write_many([(r.change.setting, r.change.new) for r in at_once], run[0].at)
            results |= {r.change.setting: self._finish(r.change, a) for r, a in zip(at_once, answers, strict=True)}
        return results

    def _write_one(self, ready: Ready) -> Result:
        change, at, backend = ready
        write = partial(backend.write, change.setting, change.new, at)
        if self._reclaims(ready):
            self.slow.submit(change, lambda: attempt(write))
            return Pending()
        return self._finish(change, attempt(write))

    def _reclaims(self, ready: Ready) -> bool:
        """Whether the kernel has to reclaim down to the value before the write returns."""
        setting, new = ready.change.setting, ready.change.new
        if setting.knob not in KNOBS or not KNOBS[setting.knob].slow or not isinstance(new, float | int):
            return False
        usage = self._routes.usage(setting, ready.at)
        return usage is not None and new < usage

    def _finish(self, change: ValueChange, answer: Answer) -> Result:
        setting = change.setting
        if isinstance(answer, Gone):
            self._held.lose(setting)
            self._journal.note(Forgot(*setting))
        elif isinstance(answer, Applied):
            self._held.take(setting, answer.value)
            self._held.learn(setting, self._routes.quantise(setting, change.new), answer.value)
            raw = self._held.reread(setting) if _is_set(setting) else answer.value
            if raw is not None and raw not in self._journal.ours(setting):
                self._journal.note(wrote(setting, raw, change.owner))
            self.take_along(setting, change.owner)
        elif isinstance(answer, Refused):
            self._still_ours(setting, change.owner)
        return answer

    def _still_ours(self, setting: Setting, owner: str) -> None:
        """What a refused write left there is the latest that we wrote, so that values under way do not push it out."""
        held = self._routes.look(setting)
        if held is not None and held in self._journal.ours(setting):
            self._journal.note(wrote(setting, held, owner))

    def take_along(self, setting: Setting, owner: str) -> None:
        """What the kernel, or a v1 cpuset with its followers, moved with our write."""
        if moved := note_side_effect(self._routes, self._journal, setting, owner):
            self._held.take(*moved)
        if not _is_set(setting):
            return
        for other in self._below(setting):
            raw = self._held.reread(other)
            if raw is not None and other in self._journal.originals and raw not in self._journal.ours(other):
                self._journal.note(wrote(other, raw, owner))

    def _below(self, setting: Setting) -> Iterator[Setting]:
        top = self._routes.place(setting.target)
        for target in self.managed if top else ():
            at = self._routes.place(target)
            if top and at and at.path.startswith(f"{top.path}/"):
                yield setting._replace(target=target)

    def _seen(self, change: ValueChange, at: Handle) -> GuardedTarget:
        setting = change.setting
        original = self._journal.original(setting)
        return GuardedTarget(
            owned=self._routes.tree.owns(at),
            managed=setting.target in self.managed,
            original=original if original is not None else self._held.values.get(setting),
            usage=self._routes.usage(setting, at),
            present=self._held.values.get(setting),
            minimum_elsewhere=self._routes.beside(setting, at) if claims_of_the_machine(setting, at) else 0.0,
        )


def _unreadable(setting: Setting, at: Handle) -> str:
    if setting.instance:
        return f"there is no {setting.name} here"
    return f"{setting.knob} cannot be read in {at.path!r}; its controller is not enabled there"


def _is_set(setting: Setting) -> bool:
    return setting.knob in KNOBS and KNOBS[setting.knob].unit is Unit.SET
