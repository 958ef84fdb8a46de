"""Proposals by setting, kept between calls so that only what changed is looked at again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

from j10ce.model.knob import Setting
from j10ce.model.plan import Proposal
from j10ce.plan.merge import well_formed

Batch: TypeAlias = tuple[Proposal, ...]  # what one controller proposes


class Index(NamedTuple):
    wishes: dict[Setting, list[Proposal]]
    malformed: tuple[Proposal, ...]


NO_WISHES = Index({}, ())


class Wishes:
    """A batch that is the same tuple as before costs nothing; give each controller the same position every time."""

    def __init__(self) -> None:
        self.batches: tuple[Batch, ...] = ()
        self.indexes: list[Index] = []

    def update(self, batches: tuple[Batch, ...]) -> set[Setting]:
        """Take the wishes of this instant; returns the settings whose wishes are others than before."""
        touched: set[Setting] = set()
        indexes: list[Index] = []
        for batch, before, index in zip_longest(batches, self.batches, self.indexes):
            old = index or NO_WISHES
            new = old if batch is before else _index(batch or ())
            if new is not old:
                touched |= {s for s, wishes in new.wishes.items() if old.wishes.get(s) != wishes}
                touched |= old.wishes.keys() - new.wishes.keys()
            indexes.append(new)
        self.batches, self.indexes = batches, indexes[: len(batches)]
        return touched

    def of(self, s: Setting) -> Sequence[Proposal]:
        lists = [index.wishes[s] for index in self.indexes if s in index.wishes]
        return lists[0] if len(lists) == 1 else [p for wishes in lists for p in wishes]

    def settings(self) -> Iterator[Setting]:
        return (s for index in self.indexes for s in index.wishes)

    def malformed(self) -> Iterator[Proposal]:
        return (p for index in self.indexes for p in index.malformed)


def _index(batch: Batch) -> Index:
    wishes: dict[Setting, list[Proposal]] = {}
    malformed = []
    for p in batch:
        if well_formed(p):
            wishes.setdefault(p.setting, []).append(p)
        else:
            malformed.append(p)
    return Index(wishes, tuple(malformed))
