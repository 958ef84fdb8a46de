"""Outcomes of simulations as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from j10ce.cli.output import table
from j10ce.sim.cluster.outcome import Estimate, PolicyOutcome, changes

CLASSES = ("owners", "availability", "minimum", "deficit", "gini", "belowSlo", "belowByAPoint")
OF_CLASSES = ("availability", "deficit", "gini", "belowByAPoint")  # of which a change is shown
OF_ALL = ("utilisation", "preemptions", "starts", "penalty")
TOTALS = ("utilisation", "preemptions", "starts", "zeroRuns", "penalty")
HEADINGS = {
    "owners": "OWNERS", "availability": "AVAILABILITY", "minimum": "WORST", "deficit": "DEFICIT", "gini": "GINI",
    "belowSlo": "BELOW SLO", "belowByAPoint": "BY A POINT", "utilisation": "UTILISATION",
    "preemptions": "PREEMPTIONS", "starts": "STARTS", "zeroRuns": "ZERO RUNS", "penalty": "PENALTY",
}  # fmt: skip
WHOLE = 100.0  # a mean above it is shown without what is behind the point


def tables(outcomes: Sequence[PolicyOutcome], owners: int) -> str:
    """What became of classes, what that took, what each what-if changed, and the worst owners."""
    parts = [table(["POLICY", "WHAT-IF", "CLASS", *map(HEADINGS.__getitem__, CLASSES)], _classes(outcomes))]
    parts.append(table(["POLICY", "WHAT-IF", *map(HEADINGS.__getitem__, TOTALS)], _totals(outcomes)))
    if changed := [*_changes(outcomes)]:
        parts.append(table(["WHAT-IF", "POLICY", "CLASS", "WHAT", "BEFORE", "AFTER", "CHANGE"], changed))
    if owners:
        parts.append(table(["POLICY", "WHAT-IF", "OWNER", "SLO", "AVAILABILITY", "PREEMPTIONS", "STARTS"],
                           _owners(outcomes, owners)))  # fmt: skip
    return "\n\n".join(parts)


def _classes(outcomes: Sequence[PolicyOutcome]) -> Iterator[tuple[str, ...]]:
    for o in outcomes:
        for name, numbers in o.classes.items():
            yield (o.policy, o.what_if, name, *(shown(numbers[column]) for column in CLASSES))


def _totals(outcomes: Sequence[PolicyOutcome]) -> Iterator[tuple[str, ...]]:
    for o in outcomes:
        yield (o.policy, o.what_if, *(shown(o.totals[column]) for column in TOTALS))


def _changes(outcomes: Sequence[PolicyOutcome]) -> Iterator[tuple[str, ...]]:
    """Those that chance does not explain."""
    for change in changes(outcomes):
        if change.certain and change.name in (OF_ALL if not change.class_ else OF_CLASSES):
            sign = "+" if change.by.mean > 0 else "-"
            by = sign + shown(change.by._replace(mean=abs(change.by.mean)))
            numbers = (shown(change.before), shown(change.after), by)
            yield change.what_if, change.policy, change.class_, HEADINGS[change.name].lower(), *numbers


def _owners(outcomes: Sequence[PolicyOutcome], most: int) -> Iterator[tuple[str, ...]]:
    for o in outcomes:
        for owner in o.owners[:most]:
            counts = (str(owner.preemptions), str(owner.starts))
            yield (o.policy, o.what_if, owner.name, f"{owner.slo:g}", f"{owner.availability:.4f}", *counts)


def shown(estimate: Estimate) -> str:
    """A mean, and how near the true one is where several seeds ran and differ."""
    within = f" ±{_number(estimate.within)}" if estimate.within else ""
    return f"{_number(estimate.mean)}{within}"


def _number(value: float) -> str:
    if value == int(value):
        return str(int(value))
    return f"{value:.0f}" if value >= WHOLE else f"{value:.4f}" if value < 1 else f"{value:.2f}"
