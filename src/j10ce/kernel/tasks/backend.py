"""The back end of what every task has by itself: one value for all of a workload, each task's own back in the end."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from j10ce.kernel.process import started
from j10ce.kernel.tasks.handout import PASSES, Handout, Recipients, since_boot
from j10ce.kernel.tasks.roll import Roll
from j10ce.kernel.tasks.trait import Recalls, TaskValue, Trait
from j10ce.model.knob import Setting, Support, Value, render
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle


class Apart(Struct, frozen=True, array_like=True):
    """A task that had another value than most, and when it began: its number alone might be another's later."""

    began: float
    value: TaskValue


class PerTask(Struct, frozen=True, omit_defaults=True):
    most: TaskValue
    apart: dict[int, Apart] = {}


_SAVED: Final = msgspec.json.Decoder(PerTask)
_ENCODER: Final = msgspec.json.Encoder(order="sorted")


class TaskBackend:
    """Remembers whom it gave a value: a newcomer without it is no drift, one that had it and has it no more is.

    What it remembers is lost with the process; `recall` says again what the journal knows.
    """

    def __init__(
        self,
        roll: Roll,
        traits: Sequence[Trait],
        *,
        proc: str = "/proc",
        clock: Callable[[], float] = since_boot,
    ) -> None:
        self._roll = roll
        self._traits = {t.knob: t for t in traits}
        self._support = {t.knob: t.support() for t in traits}
        self._handout = Handout(roll, proc, clock)
        self._proc = proc
        self._clock = clock
        self._given: dict[tuple[str, str], Recipients] = {}  # by knob and directory

    def knobs(self) -> Mapping[str, Support]:
        return self._support

    def quantise(self, s: Setting, v: Value, /) -> Value:
        return v if isinstance(v, frozenset) or s.knob not in self._traits else self._traits[s.knob].quantise(v)

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        """What we gave, unless someone has changed it since; of tasks that nobody gave anything, what most have."""
        trait, given = self._traits[s.knob], self._known(s, at)
        tasks = self._roll.tasks(at, processes=trait.processes)
        if tasks is None:
            return None
        if given is None:
            return _most(trait.read(tasks).values(), trait.default)
        return _most(self._handout.differing(trait, given, tasks).values(), given.value)

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        trait = self._traits[s.knob]
        if isinstance(v, frozenset) or isinstance(v, str) != isinstance(trait.default, str):
            return Refused(f"{s.knob} does not take {render(s.knob, v)}")
        identity = self._roll.identity(at)
        if identity is None:
            return Gone()
        given = Recipients(identity, trait.quantise(v))
        self._remember(s, at, given)
        return self._bring(trait, given, at) or Applied(given.value)

    def tend(self, s: Setting, v: Value, at: Handle, /) -> Refused | Gone | None:
        given = self._known(s, at)
        return self._bring(self._traits[s.knob], given, at) if given and given.value == v else None

    def recall(self, s: Setting, v: Value, at: Handle, /) -> None:
        """Whoever has it has it from us. Where nobody has, someone has taken it from all: that is for `read` to say."""
        trait, identity, now = self._traits[s.knob], self._roll.identity(at), self._clock()
        tasks = self._roll.tasks(at, processes=trait.processes)
        if tasks is None or identity is None or isinstance(v, frozenset):
            return
        if isinstance(trait, Recalls):
            trait.recall(tasks, v)
        having = [task for task, value in trait.read(tasks).items() if value == v]
        if having or not tasks:
            self._remember(s, at, Recipients(identity, v, dict.fromkeys(having, now)))

    def save(self, s: Setting, at: Handle, /) -> str | None:
        trait = self._traits[s.knob]
        tasks = self._roll.tasks(at, processes=trait.processes)
        if tasks is None:
            return None
        held = trait.read(tasks)
        most = _most(held.values(), trait.default)
        others = ((task, value, started(task, self._proc)) for task, value in held.items() if value != most)
        apart = {task: Apart(began, value) for task, value, began in others if began is not None}
        return _ENCODER.encode(PerTask(most, apart)).decode()

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        """Each task as it was; those that came since as most were."""
        trait, saved, given = self._traits[s.knob], _SAVED.decode(text), self._given.pop(self._key(s, at), None)
        refusals: dict[int, Refused] = {}
        done: set[int] = set()
        for _ in range(PASSES):
            tasks = self._roll.tasks(at, processes=trait.processes)
            if tasks is None:
                return Gone()
            refusals |= self._restore_each(trait, saved, tasks - done)
            if tasks <= done:
                break
            done |= tasks
        if given is not None:
            self._handout.let_go(trait, given, frozenset(done), self._elsewhere(trait, given))
        held = self.read(s, at)
        return next(iter(refusals.values()), None) or (Gone() if held is None else Applied(held))

    def _restore_each(self, trait: Trait, saved: PerTask, tasks: Iterable[int]) -> dict[int, Refused]:
        wanted: dict[TaskValue, list[int]] = {}
        for task, value in trait.read([*tasks]).items():
            before = saved.apart.get(task)
            was = before.value if before and before.began == started(task, self._proc) else saved.most
            if value != was:
                wanted.setdefault(was, []).append(task)
        return {t: refused for value, those in wanted.items() for t, refused in trait.write(those, value).items()}

    def _bring(self, trait: Trait, given: Recipients, at: Handle) -> Refused | Gone | None:
        return self._handout.bring(trait, given, at, self._elsewhere(trait, given))

    def _elsewhere(self, trait: Trait, given: Recipients) -> Callable[[int], bool]:
        def theirs(task: int) -> bool:
            every = ((knob, other) for (knob, _), other in self._given.items() if other is not given)
            return any(knob == trait.knob and task in other.tasks for knob, other in every)

        return theirs

    def _known(self, s: Setting, at: Handle) -> Recipients | None:
        """Of this very cgroup: another at its path was given nothing."""
        given = self._given.get(self._key(s, at))
        return given if given and given.identity == self._roll.identity(at) else None

    def _remember(self, s: Setting, at: Handle, given: Recipients) -> None:
        for knob, directory in [k for k in self._given if not os.path.isdir(k[1])]:
            del self._given[knob, directory]
        self._given[self._key(s, at)] = given

    def _key(self, s: Setting, at: Handle) -> tuple[str, str]:
        return s.knob, self._roll.directory(at)


def _most(values: Iterable[TaskValue], otherwise: TaskValue) -> TaskValue:
    """The most frequent; of equals the first in order."""
    return min(Counter(values).items(), key=lambda item: (-item[1], str(item[0])), default=(otherwise, 0))[0]
