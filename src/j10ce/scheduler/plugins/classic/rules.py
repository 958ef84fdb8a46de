"""The rules of classic mode: the order of the queue, and who may preempt whom. Importance is the SLO."""

from __future__ import annotations

from typing import NamedTuple

from j10ce.scheduler.accounts.measure import Measure


class Preemption(NamedTuple):
    """`rule`: the first that matched, with its numbers."""

    allowed: bool
    rule: str


class Wish(NamedTuple):
    """What is compared of the two: the pod that waits, and the one that would go."""

    same_owner: bool
    approach: str  # of who waits
    importance: float
    victim: Measure


def sort_key(metric: float, importance: float, margin: float) -> tuple[int, float, float]:
    """Who is in contention goes first, the most important one before others; then by the metric.

    It is the same order as pair by pair: both in contention and not equally important: the more important one;
    else the smaller metric.
    """
    return (0, -importance, metric) if metric < margin else (1, 0.0, metric)


def precedes(metric: float, importance: float, other: float, its_importance: float, margin: float) -> bool:
    return sort_key(metric, importance, margin) < sort_key(other, its_importance, margin)


def may_preempt(wish: Wish, margin: float, minimum: float) -> Preemption:
    """`minimum`: how long a victim has run that still has slack, or accepts the overhead."""
    victim, ran = wish.victim, wish.victim.ran >= minimum
    share = f"preemption overhead {victim.preemption_overhead:.3f}, acceptable {victim.acceptable:.3f}"
    if wish.same_owner and wish.approach != "independent":
        return Preemption(False, f"same owner, measured as {wish.approach}")
    if not victim.contributing:
        return Preemption(True, "too few pods of its owner run for it to count")
    if ran and victim.metric >= margin:
        return Preemption(True, f"slack {victim.metric:.1f} s of {margin:g} s, ran {victim.ran:.0f} s")
    if wish.importance > victim.slo:
        return Preemption(True, f"SLO {wish.importance:g} before {victim.slo:g}")
    if ran and victim.preemption_overhead <= victim.acceptable:
        return Preemption(True, f"{share}, ran {victim.ran:.0f} s")
    return Preemption(False, f"slack {victim.metric:.1f} s of {margin:g} s, ran {victim.ran:.0f} s, {share}")
