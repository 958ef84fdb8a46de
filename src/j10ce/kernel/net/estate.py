"""Links, and the shares of links that several workloads have together, as targets."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from zlib import crc32

from j10ce.kernel.net.trees import Trees
from j10ce.model.knob import SHARE_TEXT, TargetId, link
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

SHARE: Final = "share/"


class LinkEstate:
    """A link is its index: it keeps that when it goes down, or gets another name."""

    kind = "link"

    def __init__(self, trees: Trees) -> None:
        self._trees = trees

    def targets(self) -> Collection[TargetId]:
        return [link(name) for name in self._trees.links()]

    def place(self, target: TargetId, /) -> Handle | None:
        index = self._trees.index(target.partition("/")[2])
        return None if index is None else Handle(str(index))

    def identity(self, at: Handle, /) -> int | None:
        index = int(at.path) if at.path.isdecimal() else 0
        return index if index in self._trees.names() else None


class ShareEstate:
    """A share is a name until it has a class; what has one is known by it, whoever made it."""

    kind = "share"

    def __init__(self, trees: Trees) -> None:
        self._trees = trees
        self._made: set[TargetId] = set()

    def targets(self) -> Collection[TargetId]:
        trees = self._trees.every().values()
        return self._made | {t for tree in trees for t in tree.branches if t.startswith(SHARE)}

    def place(self, target: TargetId, /) -> Handle | None:
        return Handle(target.removeprefix(SHARE)) if SHARE_TEXT.fullmatch(target) else None

    def identity(self, at: Handle, /) -> int | None:
        return crc32(at.path.encode()) + 1 if TargetId(f"{SHARE}{at.path}") in self.targets() else None

    def make(self, target: TargetId, at: Handle, /) -> Applied | Refused | Gone:
        self._made.add(target)
        return Applied(at.path)

    def remove(self, target: TargetId, /) -> Applied | Refused | Gone:
        """Not while somebody is part of it."""
        for tree in self._trees.every().values():
            branch = tree.branches.get(target)
            if branch and (inside := tree.members(branch.minor)):
                return Refused(f"{target} still has {inside[0]} and {len(inside) - 1} more in it")
            if refused := tree.drop(target):
                return refused
        there = target in self._made
        self._made.discard(target)
        return Applied(target) if there else Gone()
