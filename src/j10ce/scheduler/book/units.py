"""Units of policies by row: which pods stand on them, and what the others hold. The rule stands here once.

Pods are seated in the order in which they came, each on the unit that pays for it. Who stands on a unit takes what it
asks for, at least the unit's shape; units that nobody stands on are held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from j10ce.model.kinds import Selector
from j10ce.model.resource import NOTHING, Resources
from j10ce.policy.payer import rank
from j10ce.policy.select import Labels, Test, compiled
from j10ce.scheduler.cluster import Amounts, Mask


class HeldPledge(NamedTuple):
    """What one policy holds, as far as its units have a place."""

    source: str
    namespace: str
    selector: Selector
    shape: Resources
    units: Mapping[str, int]  # by node, those in use included
    lends: bool = False  # to pods that give way
    until: float = math.inf  # wall clock


class Guest(NamedTuple):
    """A pod as it counts. Those that came first are seated first."""

    uid: str
    namespace: str
    name: str
    labels: Labels
    request: Resources
    node: str = ""  # empty until it is bound
    since: float = 0.0
    gives_way: bool = False  # best effort: runs on what is lent, and goes when that is wanted back
    ignored: bool = False  # by its labels: no policy counts for it


class Count(NamedTuple):
    """One node."""

    used: Resources
    held: Resources  # by units that nobody uses, and by what those in use are short of their shape
    lent: Resources  # the part of it that pods which give way may use
    unused: Mapping[str, int]  # units, by policy
    standing: frozenset[str]  # uids of the pods on units
    words: dict[tuple[bool, ...], str]  # why pods are refused, by which resources they ask for; made when needed


NO_COUNT: Final = Count(NOTHING, NOTHING, NOTHING, {}, frozenset(), {})


class Units:
    """`row_of` numbers nodes; `whole` is all that a node has, which shares are measured by."""

    def __init__(self, row_of: Callable[[str], int], whole: Callable[[int], Resources]) -> None:
        self._row_of, self._whole = row_of, whole
        self.pledges: dict[str, HeldPledge] = {}
        self._placed: dict[int, dict[str, int]] = {}  # units by row and policy
        self._by_namespace: dict[str, dict[str, tuple[Test, HeldPledge]]] = {}

    def put(self, pledge: HeldPledge) -> set[int]:
        """The rows where something is otherwise."""
        if self.pledges.get(pledge.source) == pledge:
            return set()
        touched = self.remove(pledge.source)
        self.pledges[pledge.source] = pledge
        self._by_namespace.setdefault(pledge.namespace, {})[pledge.source] = (compiled(pledge.selector), pledge)
        for node, units in pledge.units.items():
            if units > 0:
                row = self._row_of(node)
                self._placed.setdefault(row, {})[pledge.source] = units
                touched.add(row)
        return touched

    def remove(self, source: str) -> set[int]:
        pledge = self.pledges.pop(source, None)
        if pledge is None:
            return set()
        del self._by_namespace[pledge.namespace][source]
        rows = {self._row_of(node) for node, units in pledge.units.items() if units > 0}
        for row in rows:
            del self._placed[row][source]
            if not self._placed[row]:
                del self._placed[row]
        return rows

    def rows(self) -> Collection[int]:
        """Where there are any."""
        return self._placed.keys()

    def matching(self, guest: Guest) -> list[HeldPledge]:
        """Policies whose units the pod may take."""
        if guest.ignored:
            return []
        return [s for test, s in self._by_namespace.get(guest.namespace, {}).values() if test(guest.labels)]

    def payer(self, row: int, pledges: Sequence[HeldPledge]) -> HeldPledge | None:
        """Of these, the policy that pays on a node."""
        if len(pledges) <= 1:
            return pledges[0] if pledges else None
        whole = self._whole(row)
        return min(pledges, key=lambda s: rank(s.shape, s.source, whole))

    def counted(self, row: int, there: Iterable[Guest]) -> Count:
        """A row with these pods on it."""
        left = dict(self._placed.get(row, ()))
        used, short, standing = NOTHING, NOTHING, set[str]()
        for guest in sorted(there, key=lambda g: (g.since, g.uid)) if left else there:
            used = used.plus(guest.request)
            if (payer := self._unit_for(row, guest, left)) is not None:
                left[payer.source] -= 1
                short = short.plus(payer.shape.minus(guest.request))
                standing.add(guest.uid)
        held, lent = self._sums(left)
        unused = {s: n for s, n in left.items() if n}
        return Count(used, held.plus(short), lent, unused, frozenset(standing), {})

    # -- inside

    def _unit_for(self, row: int, guest: Guest, left: Mapping[str, int]) -> HeldPledge | None:
        if not any(left.values()):
            return None
        return self.payer(row, [pledge for pledge in self.matching(guest) if left.get(pledge.source)])

    def _sums(self, left: Mapping[str, int]) -> tuple[Resources, Resources]:
        held = lent = NOTHING
        for source, units in left.items():
            pledge = self.pledges[source]
            amount = Resources._make(n * units for n in pledge.shape)
            held = held.plus(amount)
            lent = lent.plus(amount) if pledge.lends else lent
        return held, lent


def room_beside(left: Amounts, held: Amounts, needed: Amounts | int) -> Mask:
    """Where nobody holds a part of a resource, it is nobody's business here."""
    return (held <= 0) | (held + needed <= left)
