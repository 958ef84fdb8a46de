"""Bringing a value to all tasks of a workload while some of them fork, end, or move elsewhere.

A number is not a task: it may be another's by the time something is given to it. So every look at the workload after
the giving shows who has gone since, and whoever bears a number that is no more of this workload gets nothing from us.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from j10ce.kernel.process import started
from j10ce.kernel.tasks.roll import Roll
from j10ce.kernel.tasks.trait import TaskValue, Trait
from j10ce.model.plan import Gone, Refused
from j10ce.model.workload import Handle

PASSES: Final = 8  # children have what their parents have, so that the second look finds few and the third nobody
OUTSIDE: Final = 0  # how the kernel lists a task that our PID namespace does not have
_UNSEEN: Final = "they are outside our PID namespace; the agent needs that of the host (hostPID)"
_TICK_S: Final = 0.01  # in which the kernel says when a task began


def since_boot() -> float:
    """The clock by which tasks start."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass
class Recipients:
    """What the tasks of one cgroup were given, and when each of them was."""

    identity: int
    value: TaskValue
    tasks: dict[int, float] = field(default_factory=dict)


class Handout:
    def __init__(self, roll: Roll, proc: str = "/proc", clock: Callable[[], float] = since_boot) -> None:
        self._roll = roll
        self._proc = proc
        self._clock = clock

    def bring(
        self, trait: Trait, given: Recipients, at: Handle, elsewhere: Callable[[int], bool]
    ) -> Refused | Gone | None:
        """To all that do not have it from us, until nobody new is seen. `elsewhere`: a task is another workload's."""
        refusals: dict[int, Refused] = {}
        written: set[int] = set()
        tasks = self._roll.tasks(at, processes=trait.processes)
        for _ in range(PASSES):
            if tasks is None:
                return Gone()
            fresh = tasks - given.tasks.keys() - refusals.keys()
            if not fresh:
                break
            refusals |= self._give(trait, given, fresh, written)
            tasks = self._roll.tasks(at, processes=trait.processes)
        self.let_go(trait, given, tasks or frozenset(), elsewhere, written)
        return _summary(trait, refusals, len(given.tasks))

    def differing(self, trait: Trait, given: Recipients, tasks: Iterable[int]) -> dict[int, TaskValue]:
        """What those have that were given something else: someone has changed it. Newcomers are not meant, nor whoever
        got the number of one that ended."""
        held = trait.read([task for task in tasks if task in given.tasks])
        others = {task: value for task, value in held.items() if value != given.value}
        for task in [task for task in others if not self._same(task, given.tasks[task])]:
            del given.tasks[task], others[task]
        return others

    def _give(self, trait: Trait, given: Recipients, fresh: frozenset[int], written: set[int]) -> dict[int, Refused]:
        now = self._clock()
        refusals = {OUTSIDE: Refused(_UNSEEN)} if OUTSIDE in fresh else {}
        held = trait.read(fresh - {OUTSIDE})
        wrong = [task for task, value in held.items() if value != given.value]
        written.update(wrong)
        refusals |= trait.write(wrong, given.value) if wrong else {}
        given.tasks.update((task, now) for task in fresh if task not in refusals)
        return refusals

    def let_go(
        self,
        trait: Trait,
        given: Recipients,
        tasks: frozenset[int],
        elsewhere: Callable[[int], bool],
        written: Collection[int] = (),
    ) -> None:
        """Whoever is not of this workload any more, or never was, has nothing from it. `tasks` are those that are;
        `written` were given it a moment ago, perhaps under the number of one that had just ended."""
        left = {task: given.tasks.pop(task) for task in given.tasks.keys() - tasks}
        out = [t for t, when in left.items() if (t in written or self._same(t, when)) and not elsewhere(t)]
        held = trait.read(out) if out else {}
        if ours := [task for task, value in held.items() if value == given.value]:
            trait.write(ours, trait.default)

    def _same(self, task: int, when: float) -> bool:
        """Whether the number is still the task's that had it then; one that began within the same tick is not sure."""
        begun = started(task, self._proc)
        return begun is not None and begun < when - _TICK_S


def _summary(trait: Trait, refusals: dict[int, Refused], given: int) -> Refused | None:
    if not refusals:
        return None
    what, total = "processes" if trait.processes else "threads", len(refusals) + given
    return Refused(f"{len(refusals)} of {total} {what}: {next(iter(refusals.values())).reason}")
