"""Settings that the kernel changes by itself when another one is written."""

from __future__ import annotations

from typing import Final

from j10ce.kernel.record.entry import Wrote, wrote
from j10ce.kernel.record.journal import Journal
from j10ce.kernel.routes import Routes
from j10ce.model.knob import KNOBS, Setting, Value, group
from j10ce.model.workload import Handle

# cpu.idle puts the weight aside and, when cleared, leaves the default one; a burst is cut with its quota.
_MOVES: Final = {"cpu.idle": "cpu.weight", "cpu.max": "cpu.max.burst"}


def coupled(setting: Setting) -> Setting | None:
    """The setting that a write of this one may move."""
    moved = _MOVES.get(setting.knob)
    return Setting(setting.target, moved, setting.instance) if moved else None


def foretold(setting: Setting, value: Value, owner: str) -> list[Wrote]:
    """What a write will move along, where it is known beforehand: on record before, it is ours even after a kill."""
    other = coupled(setting) if setting.knob == "cpu.idle" and not value else None
    return [wrote(other, KNOBS[other.knob].default, owner)] if other else []


def follows(routes: Routes, setting: Setting, at: Handle, present: Value) -> bool:
    """Whether a set is the one above it: on cgroup v1 it has moved, and will move, with that one."""
    above = Setting(group(at.path.rpartition("/")[0]), setting.knob)
    return isinstance(present, frozenset) and routes.look(above) == present


def note_side_effect(routes: Routes, journal: Journal, setting: Setting, owner: str) -> tuple[Setting, Value] | None:
    """What a write moved along: a value that is our doing, and no one else's."""
    other = coupled(setting)
    value = routes.look(other) if other else None
    if other is None or value is None:
        return None
    if other in journal.originals and value not in journal.ours(other):
        journal.note(wrote(other, value, owner))
    return other, value
