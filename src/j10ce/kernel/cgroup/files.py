"""The back end of cgroup files: each knob in the version its controller is mounted as (hybrid hosts have both)."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Final

import msgspec

from j10ce.errors import Unsupported
from j10ce.host.mounts import Hierarchies
from j10ce.kernel import file
from j10ce.kernel.backend import Acts, Backend, Metered, Surveys
from j10ce.kernel.cgroup import v1, v2
from j10ce.kernel.cgroup.deeds import CgroupDeeds
from j10ce.kernel.cgroup.spelling import Cgroup, Files, Spelling
from j10ce.model.knob import CGROUP_KNOBS, FREEZER, KNOBS, Deed, Setting, Support, Value
from j10ce.model.plan import Action, Applied, Gone, Refused
from j10ce.model.workload import Handle

_WITNESS: Final = {"cpu": "cpu.weight", "cpuset": "cpuset.cpus", "memory": "memory.max", FREEZER: "cgroup.freeze"}


class CgroupFiles:
    """Spells values for cgroup v1 and v2. `release` is the kernel's, as `uname -r` prints it."""

    def __init__(self, hierarchies: Hierarchies, *, release: str = os.uname().release) -> None:
        self._hierarchies = hierarchies
        self._release = version(release)
        self._deeds = CgroupDeeds(hierarchies, self._release)
        self._spellings = {name: s for name in CGROUP_KNOBS if (s := self._spelling(name))}

    def knobs(self) -> Mapping[str, Support]:
        return self._support

    def quantise(self, s: Setting, v: Value, /) -> Value:
        return self._spellings[s.knob].quantise(v) if s.knob in self._spellings else v

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        return self._known(s).parse(self._cgroup(s, at))

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        spelling, cgroup = self._known(s), self._cgroup(s, at)
        wanted = spelling.quantise(v)
        deserted = s.knob == "cpuset.cpus" and self._hierarchies.version("cpuset") == 1 and not spelling.parse(cgroup)
        result = self._settle(s, cgroup, spelling.spell(wanted, cgroup))
        if deserted and isinstance(result, Applied):
            self._call_back(at)
        # A v1 cpuset that follows its parent holds the parent's set: what was asked for is what it means.
        follows = wanted == frozenset() and isinstance(result, Applied)
        return Applied(wanted) if follows else result

    def save(self, s: Setting, at: Handle, /) -> str | None:
        held = self._held(s, self._cgroup(s, at))
        return msgspec.json.encode(held).decode() if held else None

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        cgroup, wanted = self._cgroup(s, at), msgspec.json.decode(text, type=dict[str, str])
        if self._held(s, cgroup) == wanted:
            return self._read_back(s, cgroup)
        return self._settle(s, cgroup, wanted)

    def deeds(self) -> Mapping[Deed, Support]:
        return self._deeds.support()

    def act(self, action: Action, at: Handle, /) -> Applied | Refused | Gone:
        return self._deeds.act(action, at)

    def usage(self, s: Setting, at: Handle, /) -> float | None:
        counter = self._known(s).usage
        return self._cgroup(s, at).number(counter) if counter else None

    def beside(self, s: Setting, at: Handle, /) -> float:
        controller = KNOBS[s.knob].controller
        root, here = self._cgroup(s, Handle("")), at.path_of(controller)
        others = (self._known(s).parse(Cgroup(f"{root.directory}/{n}")) for n in root.children() if n != here)
        return math.fsum(value for value in others if isinstance(value, float | int))

    def _settle(self, s: Setting, cgroup: Cgroup, wanted: Files) -> Applied | Refused | Gone:
        complete = self._known(s).also(cgroup, wanted)
        if isinstance(complete, Refused):
            return complete
        problem = file.settle(cgroup.directory, complete)
        return problem if problem is not None else self._read_back(s, cgroup)

    def _call_back(self, at: Handle) -> None:
        """v1 moves the processes of a set whose last CPU goes offline to the group above, and never back: those that
        are still here by the hierarchy of CPU time are put in again."""
        if self._hierarchies.version("cpu") is not None and at.path_of("cpuset") == at.path_of("cpu"):
            left = self._hierarchies.file("cpuset", at.path_of("cpuset"), "cgroup.procs")
            for pid in (file.read(self._hierarchies.file("cpu", at.path_of("cpu"), "cgroup.procs")) or "").split():
                file.write(left, pid)

    def _read_back(self, s: Setting, cgroup: Cgroup) -> Applied | Gone:
        held = self._known(s).parse(cgroup)
        return Gone() if held is None else Applied(held)

    def _held(self, s: Setting, cgroup: Cgroup) -> dict[str, str]:
        texts = {name: cgroup.text(name) for name in self._known(s).files}
        return {name: text for name, text in texts.items() if text is not None}

    def _cgroup(self, s: Setting, at: Handle) -> Cgroup:
        controller = KNOBS[s.knob].controller
        return Cgroup(self._hierarchies.directory(controller, at.path_of(controller)))

    def _known(self, s: Setting) -> Spelling:
        if s.knob not in self._spellings:
            raise Unsupported(s.knob, needs=self._support[s.knob].needs if s.knob in KNOBS else "another back end")
        return self._spellings[s.knob]

    def _spelling(self, knob: str) -> Spelling | None:
        match self._hierarchies.version(KNOBS[knob].controller):
            case 1:
                return v1.TABLE[knob]
            case 2:
                return v2.TABLE[knob]
            case None:
                return None

    @cached_property
    def _support(self) -> Mapping[str, Support]:
        return {name: self._judge(name) for name in CGROUP_KNOBS}

    def _judge(self, knob: str) -> Support:
        controller, spelling = KNOBS[knob].controller, self._spellings.get(knob)
        if spelling is None:
            return Support(False, needs=f"the {controller} controller, mounted as cgroup v2 or v1")
        via = f"cgroup{self._hierarchies.version(controller)}"
        example = self._example(controller)
        has = example.text(spelling.files[0]) is not None if example else self._release >= spelling.since
        if has:
            return Support(True, via=via)
        needs = spelling.needs or "kernel ≥ {}.{}".format(*spelling.since)
        return Support(False, needs=needs, instead=spelling.instead)

    def _example(self, controller: str) -> Cgroup | None:
        """A cgroup that shows the controller's files: v1's root has them, but the freezer's; v2's only its children."""
        root = Cgroup(self._hierarchies.directory(controller, ""))
        if self._hierarchies.version(controller) == 1:
            return root if controller != FREEZER else None
        children = (Cgroup(f"{root.directory}/{name}") for name in root.children())
        return next((c for c in children if c.text(_WITNESS[controller]) is not None), None)


def version(release: str) -> tuple[int, int]:
    """`6.1.0-54-amd64` to (6, 1)."""
    numbers = re.match(r"(\d+)\.(\d+)", release)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def _conforms(b: CgroupFiles) -> tuple[Backend, Metered, Surveys, Acts]:
    return b, b, b, b
