"""Unused units that best effort may stand on until their holder comes, and whether they come back in time.

CPU comes back at once: best effort is idle to the kernel as soon as anyone else wants to run. Memory has to be given
back, and that is what the deadline is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from j10ce.model.resource import NOTHING, Resources


class LendingOffer(NamedTuple):
    """Units of one policy on one node that may be lent."""

    source: str
    shape: Resources
    units: int
    used: int  # beside them
    within_s: float

    @property
    def amount(self) -> Resources:
        return Resources._make(n * self.units for n in self.shape)


class Reclaim(NamedTuple):
    """A holder took units that were lent; they must be back by the deadline."""

    source: str
    node: str
    units: int
    deadline: float  # by the clock of whoever looks
    excess: int = 0  # bytes that best effort has on top of what it may


class Loans:
    """What is lent where, as of the last look at each node."""

    def __init__(self) -> None:
        self._lent: dict[str, dict[str, int]] = {}  # by node and policy
        self._used: dict[str, dict[str, int]] = {}
        self._reclaims: dict[tuple[str, str], Reclaim] = {}
        self._since: dict[str, float] = {}  # by policy: since when someone else has called its units back

    def resume(self, source: str, since: float) -> None:
        """Units of a policy were called back by whoever led before, and were not back when we took over."""
        self._since[source] = since

    def taken_over(self) -> None:
        """Every node was looked at: units that are called back from now on have just been called back."""
        self._since.clear()

    def observe(self, node: str, free: Resources, use: Resources, offers: Sequence[LendingOffer], now: float) -> None:
        """One node: what nobody holds, what best effort uses, and what may be lent, the senior policies first."""
        before, used = self._lent.get(node, {}), self._used.get(node, {})
        self._lent[node] = lent(free, use, offers)
        self._used[node] = {o.source: o.used for o in offers}
        excess = max(0, use.memory - free.memory - sum(o.amount.memory for o in offers))
        for offer in offers:
            taken, since = min(offer.used - used.get(offer.source, offer.used), before.get(offer.source, 0)), now
            key = (offer.source, node)
            if offer.source in self._since:
                taken, since = offer.used, self._since[offer.source]  # the first look of a leader that took over
            if taken > 0:
                self._reclaims.setdefault(key, Reclaim(offer.source, node, taken, since + offer.within_s))
            if key in self._reclaims and excess:
                self._reclaims[key] = self._reclaims[key]._replace(excess=excess)
            else:
                self._reclaims.pop(key, None)
        for key in [k for k in self._reclaims if k[1] == node and k[0] not in self._used[node]]:
            del self._reclaims[key]

    def forget(self, node: str) -> None:
        """It is lost: nothing is lent there."""
        self.observe(node, NOTHING, NOTHING, (), 0.0)
        del self._lent[node], self._used[node]

    def units(self) -> Mapping[str, int]:
        """Lent, by policy."""
        total: dict[str, int] = {}
        for lent_here in self._lent.values():
            for source, units in lent_here.items():
                total[source] = total.get(source, 0) + units
        return total

    def nodes(self) -> Set[str]:
        return self._lent.keys()

    def reclaims(self, source: str) -> list[Reclaim]:
        """Those that are not back yet, the most urgent first."""
        return sorted((r for r in self._reclaims.values() if r.source == source), key=lambda r: (r.deadline, r.node))


def lent(free: Resources, use: Resources, offers: Sequence[LendingOffer]) -> dict[str, int]:
    """Units that best effort stands on: first it uses what nobody holds, then the units of those who came last."""
    over = use.minus(free)
    units_lent: dict[str, int] = {}
    for offer in reversed(offers):
        needed = (-(-o // s) for o, s in zip(over, offer.shape, strict=True) if s)
        if units := min(offer.units, max(needed, default=0)):
            units_lent[offer.source] = units
            over = over.minus(Resources._make(n * units for n in offer.shape))
    return units_lent
