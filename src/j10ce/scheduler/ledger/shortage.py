"""Refusals in numbers: what is missing where, and who holds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import nsmallest

import numpy as np

from j10ce.model.resource import RESOURCES, Resources, spell
from j10ce.model.text.words import counted
from j10ce.policy.entitlement.ledger import NAMED_HOLDERS
from j10ce.scheduler.ledger.layout import FleetLayout, PlacedPledge
from j10ce.scheduler.ledger.pledge import Lack, Pledge, PledgeRefusal
from j10ce.scheduler.ledger.witness import Amounts, Mask, room


def no_room(
    layout: FleetLayout, new: PlacedPledge, wanted: int, free: Amounts, *, proven: bool = False
) -> PledgeRefusal:
    """`free` is what others leave to it."""
    rows = new.rows & layout.open
    fitting = int(room(free, new.shape, rows, wanted).sum())
    if not rows.any():
        return PledgeRefusal("NoRoom", new.pledge.shape, wanted, 0, 0, because=_nowhere(new, wanted), proven=True)
    lack = _lack(layout, new, wanted, free, rows)
    scarce = [n for n, (want, free_there) in enumerate(zip(lack.wanted, lack.free, strict=True)) if want > free_there]
    held = tuple(_holders(layout, new.source, rows, scarce))
    return PledgeRefusal("NoRoom", new.pledge.shape, wanted, fitting, int(rows.sum()), lack, held, proven)


def _nowhere(new: PlacedPledge, wanted: int) -> str:
    wish = f"{counted(wanted, 'unit')} of {new.pledge.shape} wanted"
    matching = int(new.rows.sum())
    if matching == 1:
        return f"{wish}; 1 node matches, and takes no units: it is cordoned, disarmed or silent"
    if matching:
        return f"{wish}; {matching} nodes match, and none takes units: they are cordoned, disarmed or silent"
    return f"{wish}; no node matches " + ("nodeSelector" if new.pledge.test else "yet: none has reported")


def _lack(layout: FleetLayout, new: PlacedPledge, wanted: int, free: Amounts, rows: Mask) -> Lack:
    """Of the rows without room for one more, the one that lacks the smallest part of a unit, least full of its own."""
    fits = room(free, new.shape, rows, wanted)
    left = free - new.shape * fits[:, None]
    asked = np.flatnonzero(new.shape)
    parts = np.maximum(1 - left[:, asked] / new.shape[asked], 0).max(axis=1)
    row = int(np.lexsort((fits, np.where(rows, parts, np.inf)))[0])
    there = Resources._make(max(0, n) for n in left[row].tolist())
    largest = Resources._make(max(0, n) for n in left[rows].max(axis=0).tolist())
    name = layout.names[row]
    return Lack(name, new.pledge.shape, there, layout.nodes[name].capacity, largest)


def _holders(layout: FleetLayout, source: str, rows: Mask, scarce: list[int]) -> Iterator[tuple[str, str, int]]:
    names = {name for name, there in zip(layout.names, rows, strict=True) if there}
    for n in scarce:
        held: Counter[str] = Counter()
        for name in names:
            node = layout.nodes[name]
            for namespace, amount in (*node.claimed.items(), *node.occupied.items()):
                held[f"workloads of {namespace}"] += amount[n]
            for charged, charge in layout.nodes[name].charged.items():
                held[charged] += charge.amount[n]
                held[f"workloads of {charged.split('/')[1]}"] -= charge.amount[n]
        for placed in layout.pledges.values():
            units = sum(u for row, u in placed.unused.items() if rows[row])
            held[placed.source] += placed.pledge.shape[n] * units
        held.pop(source, None)
        largest = nsmallest(NAMED_HOLDERS, held.items(), key=lambda h: (-h[1], h[0]))
        yield from ((holder, RESOURCES[n], amount) for holder, amount in largest if amount > 0)


def nothing_promised(pledge: Pledge) -> PledgeRefusal:
    because = "units hold cpu and memory alone, and it asks for neither"
    return PledgeRefusal("NoRoom", pledge.shape, pledge.units, 0, 0, because=because, proven=True)


def over_limit(
    new: PlacedPledge, has: Resources, wants: Resources, whole: Resources, percent: int
) -> PledgeRefusal | None:
    """What one namespace may reserve of the fleet; what it has in excess stays, but does not grow.

    All of it is no limit, and of nothing there is none: then it is the room that decides.
    """
    if percent >= 100:
        return None
    limit = Resources._make(n * percent // 100 for n in whole)
    over = [n for n, more in enumerate(wants) if more and whole[n] and has[n] + more > limit[n]]
    if not over:
        return None
    numbers = "; ".join(
        f"{RESOURCES[n]} {spell(RESOURCES[n], limit[n])} of {spell(RESOURCES[n], whole[n])}, "
        f"has {spell(RESOURCES[n], has[n])}, wants {spell(RESOURCES[n], wants[n])} more"
        for n in over
    )
    because = f"namespace {new.pledge.namespace} may reserve {percent} % of the fleet: {numbers}"
    return PledgeRefusal("NamespaceLimit", new.pledge.shape, new.wanting, 0, 0, because=because, proven=True)


def at_limit(has: Resources, whole: Resources, percent: int) -> str:
    limit = Resources._make(n * percent // 100 for n in whole)
    full = [n for n, most in enumerate(limit) if has[n] >= most > 0] if percent < 100 else []
    return ", ".join(f"{RESOURCES[n]} {spell(RESOURCES[n], has[n])} of {spell(RESOURCES[n], limit[n])}" for n in full)


def creditors(layout: FleetLayout, new: PlacedPledge) -> list[PlacedPledge]:
    """Earlier promises that wait for room on nodes that the new one could use, of something that it asks for, too."""
    others = (e for e in layout.pledges.values() if e.missing > 0 and e.source != new.source)
    alike = (e for e in others if bool(((e.shape > 0) & (new.shape > 0)).any()))
    return [e for e in alike if bool((e.rows & new.rows & layout.open).any())]


def owed(layout: FleetLayout, new: PlacedPledge, to: PlacedPledge) -> PledgeRefusal:
    """It does not fit beside the nodes where an earlier promise waits for room."""
    left = int((new.rows & ~to.rows & layout.open).sum())
    elsewhere = f"; {left} other nodes have no room for all of it" if left else ""
    because = (
        f"{to.source} lacks a place for {to.missing} of its {to.pledge.units} units on the same nodes, and goes first"
    )
    return PledgeRefusal("Owed", new.pledge.shape, new.wanting, 0, left, because=because + elsewhere)
