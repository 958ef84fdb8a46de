"""The back end of unit properties: for the knobs that systemd knows, on every cgroup that is a unit.

systemd writes its own idea of these files whenever it looks at a unit, so a file written behind its back does not
last. They are set here through D-Bus; what the kernel made of them is read from the cgroup's files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import RLock
from typing import Final

import msgspec
from msgspec import Struct

from j10ce.host.mounts import UNIFIED, Hierarchies
from j10ce.kernel import file
from j10ce.kernel.backend import Backend, Batched, Metered, Settles, Surveys
from j10ce.kernel.cgroup.files import CgroupFiles
from j10ce.kernel.cgroup.spelling import number
from j10ce.kernel.systemd.dbus import CallFailed
from j10ce.kernel.systemd.spelling import TABLE, Property, Raw, properties
from j10ce.kernel.systemd.units import GONE, Units, answer
from j10ce.model.knob import FREEZER, KNOBS, Deed, KnobRole, Setting, Support, Value, parse_cpus, render
from j10ce.model.plan import Action, Applied, Gone, Refused
from j10ce.model.workload import Handle

Answer = Applied | Refused | Gone

_IDLE_SINCE: Final = 252  # systemd that knows CPUWeight=idle


class Nursery:
    """Scopes that wait for their first process, with the values they will start with: a scope is never empty.

    Whoever starts one holds the lock: a slow write of another thread then finds it waiting, or there.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self._waiting: dict[str, dict[Setting, Value]] = {}

    def __contains__(self, unit: str) -> bool:
        return unit in self._waiting

    def add(self, unit: str) -> None:
        self._waiting.setdefault(unit, {})

    def values(self, unit: str) -> Mapping[Setting, Value] | None:
        return self._waiting.get(unit)

    def collect(self, unit: str, values: Mapping[Setting, Value]) -> bool:
        with self.lock:
            if unit in self._waiting:
                self._waiting[unit].update(values)
            return unit in self._waiting

    def discard(self, unit: str) -> bool:
        return self._waiting.pop(unit, None) is not None


class Saved(Struct, frozen=True):
    """A unit's own value, and whether a run-time drop-in held it before us."""

    value: Raw
    kept: bool = False


class UnitProperties:
    """Units by property, where systemd has one; every other knob and place through the cgroup files."""

    def __init__(self, units: Units, hierarchies: Hierarchies, nursery: Nursery) -> None:
        self._units = units
        self._hierarchies = hierarchies
        self._files = CgroupFiles(hierarchies)
        self._nursery = nursery
        self._stale = False  # a drop-in was removed that systemd still lists

    def knobs(self) -> Mapping[str, Support]:
        return {name: self._judge(name, support) for name, support in self._files.knobs().items()}

    def quantise(self, s: Setting, v: Value, /) -> Value:
        return self._files.quantise(s, v)

    def deeds(self) -> Mapping[Deed, Support]:
        return self._files.deeds()

    def act(self, action: Action, at: Handle, /) -> Answer:
        return self._files.act(action, at)

    def usage(self, s: Setting, at: Handle, /) -> float | None:
        return 0.0 if self._unit(at) in self._nursery else self._files.usage(s, at)

    def beside(self, s: Setting, at: Handle, /) -> float:
        return self._files.beside(s, at)

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        unit, default = self._unit(at), KNOBS[s.knob].default
        waiting = self._nursery.values(unit)
        if waiting is not None:
            return waiting.get(s, default)
        held = self._files.read(s, at)
        if held is not None or not unit:
            return held
        return default if self._exists(at) else self._left_behind(s, unit)

    def write(self, s: Setting, v: Value, at: Handle, /) -> Answer:
        return self.write_many([(s, v)], at)[0]

    def write_many(self, values: Sequence[tuple[Setting, Value]], at: Handle, /) -> list[Answer]:
        unit, wanted = self._unit(at), {s: self.quantise(s, v) for s, v in values}
        if self._nursery.collect(unit, wanted):
            return [Applied(wanted[s]) for s, _ in values]
        if not self._exists(at):
            return [self._absent(s, unit) for s, _ in values]
        by_property = {s: v for s, v in wanted.items() if self._row(s, unit)}
        answers = self._set_all(unit, by_property, at)
        # After the properties: a burst must fit the quota that came with it.
        answers |= {s: self._write_file(s, v, at) for s, v in wanted.items() if s not in by_property}
        return [answers[s] for s, _ in values]

    def save(self, s: Setting, at: Handle, /) -> str | None:
        unit = self._unit(at)
        row = self._row(s, unit)
        if unit in self._nursery:
            # It will be started with our values, so that only a drop-in can take them back; that goes with the scope.
            return _text(Saved(row.unset, kept=True)) if row else _default_text(s.knob)
        if row is None or not self._exists(at):
            absent = unit and self._exists(at)
            return self._files.save(s, at) or (_default_text(s.knob) if absent else None)
        try:
            return _text(Saved(self._ask(unit, row), bool(self._units.drop_ins(unit, row.drop_in))))
        except CallFailed as e:
            if e.error in GONE:
                return None
            raise

    def restore(self, s: Setting, text: str, at: Handle, /) -> Answer:
        unit = self._unit(at)
        row = self._row(s, unit)
        if self._nursery.collect(unit, {s: KNOBS[s.knob].default}):
            return Applied(KNOBS[s.knob].default)
        if row is None:
            return self._restore_file(s, text, at)
        saved = msgspec.json.decode(text, type=Saved)
        try:
            self._units.set(unit, {row.name: row.typed(saved.value)})
        except CallFailed as e:
            return answer(e, f"give back {row.name} = {saved.value} to {unit}")
        finally:
            if not saved.kept:
                self._forget(unit, row)
        return self._read_back(s, row.parse(saved.value), at)

    def settle(self) -> None:
        """systemd forgets the drop-ins that `restore` removed; the units are then as they were, to the last line."""
        if self._stale:
            with suppress(CallFailed):  # what it still lists has no effect; the next revert asks again
                self._units.reload()
                self._stale = False

    def _judge(self, knob: str, support: Support) -> Support:
        if needs := self._beyond_us(knob) if support.ok else support.needs:
            return Support(False, needs=needs, instead=support.instead)
        return support._replace(via="systemd") if knob in TABLE else support

    def _beyond_us(self, knob: str) -> str:
        """What a user's manager lacks for a knob; the system's has everything."""
        root, controller = self._units.root, KNOBS[knob].controller
        if not root:
            return ""
        if controller != FREEZER and controller not in self._delegated():
            return f"the {controller} controller delegated to {root}"
        bare = self._unprotected(knob, root) if KNOBS[knob].role is KnobRole.GUARANTEE else ""
        return f"{knob} of {bare}, which root alone can set" if bare else ""

    def _unprotected(self, knob: str, root: str) -> str:
        """The first group from the top that protects nothing of what is inside it; empty where all do."""
        steps = root.split("/")
        above = ("/".join(steps[: n + 1]) for n in range(len(steps)))
        bare = (path for path in above if file.read(self._hierarchies.file(UNIFIED, path, knob)) in (None, "0"))
        return next(bare, "")

    def _delegated(self) -> list[str]:
        """What a user's manager may hand out."""
        return (file.read(self._hierarchies.file(UNIFIED, self._units.root, "cgroup.controllers")) or "").split()

    def _unit(self, at: Handle) -> str:
        return self._units.unit_at(at.path)

    def _row(self, s: Setting, unit: str) -> Property | None:
        known = unit and (s.knob != "cpu.idle" or self._units.version >= _IDLE_SINCE)
        return TABLE.get(s.knob) if known else None

    def _exists(self, at: Handle) -> bool:
        return os.path.isdir(self._hierarchies.directory(UNIFIED, at.path))

    def _write_file(self, s: Setting, v: Value, at: Handle) -> Answer:
        default = KNOBS[s.knob].default
        return Applied(default) if v == default and self._switched_off(s, at) else self._files.write(s, v, at)

    def _restore_file(self, s: Setting, text: str, at: Handle) -> Answer:
        if not self._exists(at):
            return Gone()
        off = self._switched_off(s, at)
        return Applied(KNOBS[s.knob].default) if off else self._files.restore(s, text, at)

    def _switched_off(self, s: Setting, at: Handle) -> bool:
        """systemd gives a unit the files of a controller only while someone asks for it."""
        return bool(self._unit(at)) and self._files.read(s, at) is None and self._exists(at)

    def _set_all(self, unit: str, wanted: Mapping[Setting, Value], at: Handle) -> dict[Setting, Answer]:
        answers: dict[Setting, Answer] = {s: r for s in wanted if (r := self._objection(s, wanted, at))}
        todo = {s: v for s, v in wanted.items() if s not in answers}
        problem = self._set(unit, todo) if todo else None
        if isinstance(problem, Refused) and len(todo) > 1:
            # systemd takes all or none: ask one by one which it was.
            return answers | {s: self.write(s, v, at) for s, v in todo.items()}
        return answers | {s: problem or self._read_back(s, v, at) for s, v in todo.items()}

    def _objection(self, s: Setting, wanted: Mapping[Setting, Value], at: Handle) -> Refused | Gone | None:
        idle = s._replace(knob="cpu.idle")
        if s.knob == "cpu.weight" and (wanted[idle] if idle in wanted else self.read(idle, at)):
            return Refused(f"{at.path} has cpu.idle = 1 and takes no cpu.weight; clear cpu.idle first")
        if KNOBS[s.knob].slow:
            return self._reclaim(s, wanted[s], at)
        return None

    def _reclaim(self, s: Setting, v: Value, at: Handle) -> Refused | Gone | None:
        """Lower a limit in the file first: this thread then waits for the reclaim, and not PID 1."""
        held = self._files.read(s, at)
        if not isinstance(held, float) or not isinstance(v, float) or v >= held:
            return None
        answer = self._files.write(s, v, at)
        return None if isinstance(answer, Applied) else answer

    def _set(self, unit: str, wanted: Mapping[Setting, Value]) -> Refused | Gone | None:
        try:
            self._units.set(unit, properties(wanted))
        except CallFailed as e:
            shown = ", ".join(f"{s.knob} = {render(s.knob, v)}" for s, v in wanted.items())
            return answer(e, f"set {shown} on {unit}")
        return None

    def _read_back(self, s: Setting, wanted: Value, at: Handle) -> Answer:
        if s.knob == "cpuset.cpus" and wanted == frozenset():
            return self._follow_parent(s, at)
        held = self.read(s, at)
        if isinstance(held, frozenset) and held != wanted:
            # systemd logs what the kernel refuses, and keeps it for the next time.
            self._set(self._unit(at), {s: held})
            shown = f"{s.knob} = {render(s.knob, wanted)}"
            return Refused(f"{at.path} does not take {shown}: the kernel keeps {render(s.knob, held)}")
        return Gone() if held is None else Applied(held)

    def _follow_parent(self, s: Setting, at: Handle) -> Answer:
        """A unit without AllowedCPUs keeps the set it had, as long as a sibling needs the controller.

        The kernel may refuse an empty set where processes are: the parent's, written out, means the same.
        """
        try:
            self._units.ping()  # whoever is answered sees the controllers that systemd withdrew before
        except CallFailed as e:
            return answer(e, f"clear {s.knob} of {at.path}")
        if not self.read(s, at):
            return Applied(frozenset()) if self._exists(at) else Gone()
        cleared = self._files.write(s, frozenset(), at)
        if isinstance(cleared, Refused):
            above = self._hierarchies.file(UNIFIED, os.path.dirname(at.path), "cpuset.cpus.effective")
            cleared = self._files.write(s, parse_cpus(file.read(above) or ""), at)
        return Applied(frozenset()) if isinstance(cleared, Applied) else cleared

    def _absent(self, s: Setting, unit: str) -> Refused | Gone:
        if unit and self._left_behind(s, unit) is not None:
            return Refused(f"{unit} does not run; its next start will have the {s.knob} that was set before")
        return Gone()

    def _left_behind(self, s: Setting, unit: str) -> Value | None:
        """A unit that was stopped has no cgroup, but systemd keeps a value of ours for its next start."""
        row = self._row(s, unit)
        if row is None or not self._units.drop_ins(unit, row.drop_in):
            return None
        try:
            return row.parse(self._ask(unit, row))
        except CallFailed:
            return None

    def _ask(self, unit: str, row: Property) -> Raw:
        return row.raw(self._units.get(unit, row.name))

    def _forget(self, unit: str, row: Property) -> None:
        for path in self._units.drop_ins(unit, row.drop_in):
            with suppress(OSError):  # gone, or ours to read alone: then it stays, and says what was given back
                os.unlink(path)
            self._stale = True
            with suppress(OSError):  # someone else keeps a drop-in there
                os.rmdir(os.path.dirname(path))


def _default_text(knob: str) -> str:
    """As the cgroup files save it: what they hold where nobody wrote, or would hold if they were there."""
    return msgspec.json.encode({knob: str(int(number(KNOBS[knob].default)))}).decode()


def _text(saved: Saved) -> str:
    return msgspec.json.encode(saved).decode()


def _conforms(b: UnitProperties) -> tuple[Backend, Batched, Metered, Settles, Surveys]:
    return b, b, b, b, b
