"""The back end of disks where systemd owns the tree: it has the files of a unit only while IOAccounting is on there.

It is turned on for whoever gets a value, and off again where it was off before. Weights are properties, since systemd
writes its own over them; of caps and latencies that nobody told it about it knows nothing, and leaves them alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from j10ce.host.mounts import IO, UNIFIED, Hierarchies
from j10ce.kernel import file
from j10ce.kernel.backend import Backend, Instanced, Settles
from j10ce.kernel.systemd.dbus import CallFailed, Typed
from j10ce.kernel.systemd.properties import Nursery
from j10ce.kernel.systemd.units import UNSET, Units, answer
from j10ce.model.knob import FILES, KNOBS, Setting, Support, Value, group
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

Answer = Applied | Refused | Gone
WEIGHT: Final = "io.weight"
ACCOUNTING: Final = "IOAccounting"
_WEIGHT: Final = "IOWeight"
_SHOWS: Final = "io.max"  # there exactly while the controller is
_DEFAULTS: Final[Mapping[str, str]] = {  # as the files save them
    k.name: '"max"' if k.default == math.inf else str(k.default) for k in KNOBS.values() if k.on == FILES
}


class DiskBackend(Backend, Instanced, Protocol):
    """Of the files."""


class SavedDisk(Struct, frozen=True, omit_defaults=True):
    """What the files held, and what systemd knew of it."""

    text: str
    off: bool = False  # there were no files
    weight: int = UNSET  # the unit's own
    kept: bool = False  # a run-time drop-in held it
    ours: bool = False  # it was written by this agent


class UnitDisks:
    def __init__(self, units: Units, hierarchies: Hierarchies, nursery: Nursery, files: DiskBackend) -> None:
        self._units = units
        self._hierarchies = hierarchies
        self._nursery = nursery
        self._files = files
        self._switched: set[str] = set()  # cgroups where we turned it on
        self._ours: dict[str, set[Setting]] = {}  # and what we wrote there and have not given back
        self._stale = False

    def knobs(self) -> Mapping[str, Support]:
        """A user's manager has what was delegated to it."""
        offered, root = self._files.knobs(), self._units.root
        delegated = file.read(self._hierarchies.file(UNIFIED, root, "cgroup.controllers")) or ""
        if not root or IO in delegated.split():
            return offered
        needs = f"the io controller delegated to {root}"
        return {knob: Support(False, needs=needs, instead=s.instead) for knob, s in offered.items()}

    def instances(self, knob: str, at: Handle, /) -> Sequence[str]:
        return self._files.instances(knob, at)

    def quantise(self, s: Setting, v: Value, /) -> Value:
        return self._files.quantise(s, v)

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        """None while it is off: whoever wants to be counted, or to be limited, has to turn it on."""
        waiting = self._nursery.values(self._unit(at))
        return self._files.read(s, at) if waiting is None else waiting.get(s, KNOBS[s.knob].default)

    def write(self, s: Setting, v: Value, at: Handle, /) -> Answer:
        unit, wanted = self._unit(at), self.quantise(s, v)
        if self._nursery.collect(unit, {s: wanted}):
            return Applied(wanted)
        if problem := self._turn_on(unit, at):
            return problem
        self._ours.setdefault(at.path, set()).add(s)
        if s.knob == WEIGHT and unit and isinstance(wanted, float):
            return self._weigh(s, int(wanted), at)
        return self._files.write(s, v, at)

    def save(self, s: Setting, at: Handle, /) -> str | None:
        """What has no files yet gets them: what they hold then is what there was."""
        unit = self._unit(at)
        if unit in self._nursery:
            return _text(SavedDisk(_DEFAULTS[s.knob], kept=True))
        off = self._is_off(at)
        if off and self._turn_on(unit, at):
            return None
        text = self._files.save(s, at)
        if text is None or not unit:
            return text
        ours = s in self._ours.get(at.path, ())
        if s.knob != WEIGHT:
            return _text(SavedDisk(text, off, ours=ours))
        weight = int(self._units.get(unit, _WEIGHT))
        return _text(SavedDisk(text, off, weight, bool(self._units.drop_ins(unit, _WEIGHT)), ours))

    def restore(self, s: Setting, text: str, at: Handle, /) -> Answer:
        unit, default = self._unit(at), KNOBS[s.knob].default
        if self._nursery.collect(unit, {s: default}):
            return Applied(default)
        saved = msgspec.json.decode(text, type=SavedDisk) if text.startswith("{") else SavedDisk(text)
        self._ours.get(at.path, set()).discard(s)
        if saved.off:
            self._switched.add(at.path)
        if self._is_off(at):
            return Applied(default)
        if s.knob == WEIGHT and unit:
            given = self._weigh(s, saved.weight, at)
            if not saved.kept:
                self._forget(unit, _WEIGHT)
            return given
        return self._files.restore(s, saved.text, at)

    def settle(self) -> None:
        """Off again, where it was off and nothing is said of any disk any more, nor is counted for us."""
        self._ours = {path: those for path, those in self._ours.items() if self._exists(Handle(path))}
        for path in [p for p in self._switched if not self._ours.get(p) and not self._said(Handle(p))]:
            self._switched.discard(path)
            self._ours.pop(path, None)
            unit = self._units.unit_at(path)
            with suppress(CallFailed):  # the unit is gone, and its drop-in goes below
                self._units.set(unit, {ACCOUNTING: Typed("b", False)})
            self._forget(unit, ACCOUNTING)
        if self._stale:
            with suppress(CallFailed):  # what it still lists has no effect; the next revert asks again
                self._units.reload()
                self._stale = False

    def _weigh(self, s: Setting, weight: int, at: Handle) -> Answer:
        unit = self._unit(at)
        try:
            self._units.set(unit, {_WEIGHT: Typed("t", weight)})
        except CallFailed as e:
            return answer(e, f"set {_WEIGHT} of {unit}")
        held = self._files.read(s, at)
        if held is None:  # with a weight of nobody's own the files went
            return Applied(KNOBS[s.knob].default) if self._exists(at) else Gone()
        return Applied(held)

    def _turn_on(self, unit: str, at: Handle) -> Answer | None:
        """None: its files are there now."""
        if not self._exists(at):
            return Gone()
        if not self._is_off(at):
            return None
        if not unit:
            return Refused(f"{at.path} has no files of the io controller, and is no unit that could have {ACCOUNTING}")
        try:
            self._units.set(unit, {ACCOUNTING: Typed("b", True)})
        except CallFailed as e:
            return answer(e, f"turn on {ACCOUNTING} of {unit}")
        self._switched.add(at.path)
        return None

    def _said(self, at: Handle) -> bool:
        offered = [knob for knob, support in self._files.knobs().items() if support.ok]
        held = self._files.read(Setting(group(at.path), WEIGHT), at) if WEIGHT in offered else None
        several = (knob for knob in offered if KNOBS[knob].several)
        return any(self._files.instances(k, at) for k in several) or held not in (None, KNOBS[WEIGHT].default)

    def _unit(self, at: Handle) -> str:
        return self._units.unit_at(at.path)

    def _exists(self, at: Handle) -> bool:
        return os.path.isdir(self._hierarchies.directory(UNIFIED, at.path))

    def _is_off(self, at: Handle) -> bool:
        return self._exists(at) and file.read(self._hierarchies.file(UNIFIED, at.path, _SHOWS)) is None

    def _forget(self, unit: str, name: str) -> None:
        for path in self._units.drop_ins(unit, name):
            with suppress(OSError):  # gone, or root's to remove
                os.unlink(path)
            self._stale = True
            with suppress(OSError):  # someone else keeps a drop-in there
                os.rmdir(os.path.dirname(path))


def _text(saved: SavedDisk) -> str:
    return msgspec.json.encode(saved).decode()


def _conforms(b: UnitDisks) -> tuple[Backend, Instanced, Settles]:
    return b, b, b
