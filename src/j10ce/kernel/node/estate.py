"""The node is one target that is always there; nobody makes or removes it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from j10ce.model.knob import NODE, TargetId
from j10ce.model.workload import Handle

HERE: Final = Handle("node")
ITSELF: Final = 1  # its identity: another machine, or another boot, has another journal


class NodeEstate:
    kind = "node"

    def targets(self) -> Collection[TargetId]:
        return (NODE,)

    def place(self, target: TargetId, /) -> Handle | None:
        return HERE if target == NODE else None

    def identity(self, at: Handle, /) -> int | None:
        return ITSELF if at.path == HERE.path else None
