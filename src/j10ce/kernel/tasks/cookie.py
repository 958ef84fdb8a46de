"""Core scheduling: threads of one group have one cookie, and those of different cookies never share a core at a time.

The kernel numbers cookies by itself. Which number is whose is known from whom it was given to, and after a restart from
what the journal says of the workload that has it.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from j10ce.errors import Denied
from j10ce.kernel.tasks.prctl import NO_COOKIE, Core, Prctl, aside
from j10ce.kernel.tasks.trait import TaskValue
from j10ce.model.knob import Support
from j10ce.model.plan import Refused

VIA: Final = "prctl"
FOREIGN: Final = "#"  # begins the name of a cookie that is not ours
MOST_MEMBERS: Final = 1024  # remembered of a group: one that lives is enough
INIT: Final = 1  # nobody gives it a cookie
_NEEDS: Final = {
    errno.EINVAL: "a kernel with CONFIG_SCHED_CORE (≥ 5.14)",
    errno.ENODEV: "hyperthreads: SMT is off, or the CPU has none",
    errno.EPERM: "the right to look into other processes (CAP_SYS_PTRACE), and no seccomp filter against prctl",
}


class Cookies:
    knob = "sched.cookie"
    processes = False
    default: TaskValue = ""

    def __init__(self, core: Core | None = None) -> None:
        self._core = core or Prctl()
        self._names: dict[int, str] = {NO_COOKIE: ""}
        self._members: dict[str, dict[int, None]] = {}

    def support(self) -> Support:
        try:
            self._core.get(0)
        except OSError as e:
            return Support(False, VIA, needs=_needs(e))
        return Support(True, VIA)

    def quantise(self, value: TaskValue, /) -> TaskValue:
        return value

    def read(self, tasks: Collection[int], /) -> Mapping[int, TaskValue]:
        return {task: self._name(cookie) for task, cookie in self._cookies(tasks)}

    def write(self, tasks: Collection[int], value: TaskValue, /) -> Mapping[int, Refused]:
        return aside(partial(self._hand_out, tasks, str(value)))

    def recall(self, tasks: Collection[int], value: TaskValue, /) -> None:
        for task, cookie in self._cookies(tasks if value else ()):
            if self._names.setdefault(cookie, str(value)) == value:
                self._join(str(value), task)

    def _cookies(self, tasks: Collection[int]) -> Iterator[tuple[int, int]]:
        for task in tasks:
            with suppress(ProcessLookupError):
                try:
                    yield task, self._core.get(task)
                except PermissionError as e:
                    raise Denied(f"the cookie of thread {task} cannot be read: it needs {_needs(e)}") from e

    def _hand_out(self, tasks: Collection[int], name: str) -> dict[int, Refused]:
        """On a thread that ends afterwards, and is a member of the group meanwhile."""
        try:
            self._become(name)
        except OSError as e:
            return dict.fromkeys(tasks, Refused(f"cannot take part in group {name!r}: {_needs(e)}"))
        answers = {task: self._hand_to(task, name) for task in tasks}
        return {task: refused for task, refused in answers.items() if refused}

    def _become(self, name: str) -> None:
        """A member of the group: by one that there is, or as the first."""
        if not name:
            if self._core.get(0) != NO_COOKIE:  # the agent itself is in a group of someone's
                self._core.take_from(INIT)
            return
        for member in list(self._members.get(name, ())):
            with suppress(ProcessLookupError):
                self._core.take_from(member)
                if self._name(self._core.get(0)) == name:
                    return
            del self._members[name][member]
        self._core.create()
        self._names = {number: n for number, n in self._names.items() if n != name} | {self._core.get(0): name}

    def _hand_to(self, task: int, name: str) -> Refused | None:
        """What someone else gave cannot be given back: it is left alone."""
        try:
            if self._name(self._core.get(task)).startswith(FOREIGN):
                return Refused("someone else gave them a cookie of core scheduling, which could not be given back")
            self._core.hand_to(task)
        except ProcessLookupError:
            return None
        except OSError as e:
            return Refused(f"the kernel said {errno.errorcode.get(e.errno or 0, e.errno)}; it needs {_needs(e)}")
        self._join(name, task)
        return None

    def _join(self, name: str, task: int) -> None:
        members = self._members.setdefault(name, {}) if name else {}
        members[task] = None
        if len(members) > MOST_MEMBERS:
            del members[next(iter(members))]

    def _name(self, cookie: int) -> str:
        return self._names.get(cookie, f"{FOREIGN}{cookie:x}")


def _needs(e: OSError) -> str:
    return _NEEDS.get(e.errno or 0, e.strerror or "")
