"""Groups of resctrl as targets: folders right below its root."""

from __future__ import annotations

from collections.abc import Collection

from j10ce.kernel.resctrl.files import NOT_GROUPS, ResctrlFiles
from j10ce.model.knob import GROUP_NAME, TargetId, resctrl
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle


class ResctrlEstate:
    """The root's own group is nobody's target: whoever has no group of ours is in it."""

    kind = "resctrl"

    def __init__(self, files: ResctrlFiles) -> None:
        self._files = files

    def targets(self) -> Collection[TargetId]:
        return [resctrl(name) for name in self._files.groups()]

    def place(self, target: TargetId, /) -> Handle | None:
        name = target.partition("/")[2]
        return Handle(name) if GROUP_NAME.fullmatch(name) and name not in NOT_GROUPS else None

    def identity(self, at: Handle, /) -> int | None:
        return self._files.identity(at.path)

    def make(self, target: TargetId, at: Handle, /) -> Applied | Refused | Gone:
        return self._files.make(at.path) or Applied(at.path)

    def remove(self, target: TargetId, /) -> Applied | Refused | Gone:
        at = self.place(target)
        return Gone() if at is None else self._files.remove(at.path) or Applied(at.path)
