"""The book of reservations of one node: exact, never oversold, and able to say why not.

A line is a promise. Promises are admitted only while they all fit; should the machine shrink below them, the book keeps
the promises and grants less: cut by tier from the bottom, in proportion within a tier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import nsmallest
from operator import sub
from typing import Final, NamedTuple

from msgspec import Struct

from j10ce.model.kinds import Tier
from j10ce.model.quantity import Bytes, Millicores
from j10ce.model.resource import NOTHING, RESOURCES, Resources, spell

NAMED_HOLDERS: Final = 3  # how many of those who hold a scarce resource a refusal names
AGENT: Final = "agent"  # the holder of what the agent keeps for itself
OTHERS: Final = "memory.min of cgroups that are not ours"
NO_BYTES: Final = Bytes(0)


class Headroom(Struct, frozen=True):
    """What is never promised: the machine itself has to run. The larger of a share and an amount counts."""

    percent: int = 5
    cpu: Millicores = Millicores(100)
    memory: Bytes = Bytes(512 << 20)


HEADROOM: Final = Headroom()


def guaranteeable(capacity: Resources, headroom: Headroom = HEADROOM) -> Resources:
    """The part of a node that may be promised."""
    share = Resources._make(-(-amount * headroom.percent // 100) for amount in capacity)
    return capacity.minus(share.at_least(Resources(headroom.cpu, headroom.memory)))


class Line(NamedTuple):
    """One promise. `holder` is a workload's target, or a policy for its units that nobody uses yet."""

    holder: str
    amount: Resources
    tier: Tier
    charged: str = ""  # the object that pays: `MinimalReservationPolicy/payments/db`
    units: int = 0  # a policy's: how many it holds unused; a workload's: 1 when it stands on a unit of `charged`


class PromiseRefusal(NamedTuple):
    """Why a promise was not made, in numbers."""

    wanted: Resources  # on top of what the holder has
    free: Resources
    capacity: Resources
    held_by: tuple[tuple[str, str, int], ...]  # (holder, resource, amount), the largest of each scarce resource
    because: str = ""  # when it is not the room that lacks

    def __str__(self) -> str:
        if self.because:
            return self.because
        lacks = [
            f"{name} {spell(name, want)} wanted, {spell(name, free)} free of {spell(name, whole)}"
            for name, want, free, whole in zip(RESOURCES, self.wanted, self.free, self.capacity, strict=True)
            if want > free
        ]
        held = ", ".join(f"{holder} {name} {spell(name, amount)}" for holder, name, amount in self.held_by)
        return "; ".join(lacks) + (f"; held by {held}" if held else "")


class Ledger:
    """A mutable book. Not for sharing while it is being written; `resolve` hands out finished ones."""

    def __init__(self, capacity: Resources, lines: Iterable[Line] = (), *, beside: Bytes = NO_BYTES) -> None:
        """`lines` are promises made earlier, see `carry`; `beside`: memory that others keep, none of `capacity`."""
        self.capacity = capacity.minus(Resources(memory=beside))
        self.beside = beside
        self._lines: dict[str, Line] = {}
        self._promised = NOTHING
        self._granted: Mapping[str, Resources] | None = None
        self._largest: dict[int, tuple[Line, ...]] = {}  # by resource; computed when a refusal asks
        for line in lines:
            self.carry(line)

    def copy(self) -> Ledger:
        other = Ledger(self.capacity)
        other.beside = self.beside
        other._lines, other._promised = dict(self._lines), self._promised
        return other

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self._lines.values())

    def get(self, holder: str) -> Line | None:
        return self._lines.get(holder)

    @property
    def promised(self) -> Resources:
        return self._promised

    @property
    def free(self) -> Resources:
        return self.capacity.minus(self._promised)

    def reserve(self, line: Line) -> PromiseRefusal | None:
        """Promise `line`, in place of what its holder has; None when done, else nothing has changed.

        Asking for less or the same always succeeds.
        """
        old = self._lines.get(line.holder)
        refusal = self._refuse(old.amount if old else NOTHING, line.amount)
        if refusal is None:
            self._put(line)
        return refusal

    def carry(self, line: Line) -> None:
        """Take over a promise made earlier, also where the machine has shrunk below it: then grants are cut."""
        self._put(line)

    def exchange(self, *lines: Line) -> PromiseRefusal | None:
        """Replace the lines of several holders at once: all or none."""
        if len(lines) == 1:
            return self.reserve(lines[0])
        old = _total(self._lines[line.holder] for line in lines if line.holder in self._lines)
        refusal = self._refuse(old, _total(lines))
        for line in lines if refusal is None else ():
            self._put(line)
        return refusal

    def release(self, holder: str) -> Line | None:
        """Free what `holder` has; the line, or None when there was none."""
        line = self._lines.pop(holder, None)
        if line is not None:
            self._promised = Resources._make(map(sub, self._promised, line.amount))
            self._changed()
        return line

    def granted(self, holder: str) -> Resources:
        """What its promise is worth on this machine; nothing for a stranger."""
        if self._granted is None:
            self._granted = _cut(self._lines, self._promised, self.capacity)
        line = self._lines.get(holder)
        return self._granted.get(holder, line.amount if line else NOTHING)

    def cut(self, holder: str) -> str:
        """Why a grant is below its promise; empty when it is not."""
        line = self._lines.get(holder)
        if line is None or (granted := self.granted(holder)) == line.amount:
            return ""
        short = [
            f"{name} {spell(name, promise)} cut to {spell(name, grant)}, "
            f"{spell(name, total)} are promised and {spell(name, whole)} there"
            for name, promise, grant, total, whole in zip(
                RESOURCES, line.amount, granted, self._promised, self.capacity, strict=True
            )
            if grant < promise
        ]
        return f"the machine is too small for its promises; tier {line.tier.value}: " + "; ".join(short)

    def _put(self, line: Line) -> None:
        old = self._lines.pop(line.holder, None)
        if old is not None:
            self._promised = Resources._make(map(sub, self._promised, old.amount))
        if any(line.amount):
            self._promised = self._promised.plus(line.amount)
            self._lines[line.holder] = line
        self._changed()

    def _changed(self) -> None:
        self._granted = None
        self._largest.clear()

    def _refuse(self, before: Resources, after: Resources) -> PromiseRefusal | None:
        """A resource is lacking only where more of it is asked for: what shrinks or stays always fits."""
        promised, capacity = self._promised, self.capacity
        lacking = [n for n in range(len(after)) if before[n] < after[n] > capacity[n] - promised[n] + before[n]]
        if not lacking:
            return None
        held = [(line.holder, RESOURCES[n], line.amount[n]) for n in lacking for line in self._holders(n)]
        if self.beside and RESOURCES.index("memory") in lacking:
            held.append((OTHERS, "memory", self.beside))
        return PromiseRefusal(after.minus(before), self.free, self.capacity, tuple(held))

    def _holders(self, n: int) -> tuple[Line, ...]:
        if n not in self._largest:
            largest = nsmallest(NAMED_HOLDERS, self._lines.values(), key=lambda line: (-line.amount[n], line.holder))
            self._largest[n] = tuple(line for line in largest if line.amount[n])
        return self._largest[n]


def _total(lines: Iterable[Line]) -> Resources:
    total = NOTHING
    for line in lines:
        total = total.plus(line.amount)
    return total


def _cut(lines: Mapping[str, Line], promised: Resources, capacity: Resources) -> dict[str, Resources]:
    """What each line is granted where the promises exceed the machine; empty where they do not."""
    if promised.fits(capacity):
        return {}
    tiers: dict[Tier, list[Line]] = {}
    for line in lines.values():
        tiers.setdefault(line.tier, []).append(line)
    granted: dict[str, Resources] = {}
    room = capacity
    for tier in Tier:  # from the best protected down: what is left is for those below
        wanted = _total(tiers.get(tier, ()))
        for line in tiers.get(tier, ()):
            granted[line.holder] = Resources._make(map(_share, line.amount, wanted, room))
        room = room.minus(wanted)
    return granted


def _share(amount: int, wanted: int, room: int) -> int:
    return amount if wanted <= room else amount * room // wanted
