"""What runs say together: the mean over seeds of each number, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from j10ce.sim.cluster.tally import OwnerResult

# Student's t for a confidence of 95 %, by degrees of freedom from 1 on; beyond the last it is nearly the normal one.
STUDENT: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
NORMAL: Final = 1.96


class Estimate(NamedTuple):
    """A mean; `within`: the true one is so near with a confidence of 95 %. Of a single run nothing is known of it."""

    mean: float
    within: float | None


class RunResult(NamedTuple):
    """Of one run: one seed of one policy."""

    totals: Mapping[str, float]
    classes: Mapping[str, Mapping[str, float]]
    curves: Mapping[str, Sequence[float]]
    owners: Sequence[OwnerResult]


class PolicyOutcome(NamedTuple):
    """Of one policy under one what-if; `what_if` is empty as long as nothing is changed. `owners` are of one seed."""

    what_if: str
    policy: str
    totals: Mapping[str, Estimate]
    classes: Mapping[str, Mapping[str, Estimate]]
    curves: Mapping[str, Sequence[float]]
    owners: Sequence[OwnerResult]
    runs: Sequence[RunResult]  # one for each seed

    def plain(self) -> dict[str, Any]:
        return {
            "whatIf": self.what_if,
            "policy": self.policy,
            "totals": {name: _plain(estimate) for name, estimate in self.totals.items()},
            "classes": {
                of: {name: _plain(estimate) for name, estimate in numbers.items()}
                for of, numbers in self.classes.items()
            },
            "owners": [
                {("class" if k == "class_" else _camel(k)): _rounded(v) for k, v in owner._asdict().items()}
                for owner in self.owners
            ],
        }


def outcome(what_if: str, policy: str, runs: Sequence[RunResult]) -> PolicyOutcome:
    """`runs`: one for each seed, at least one."""
    classes = list(dict.fromkeys(name for run in runs for name in run.classes))
    return PolicyOutcome(
        what_if,
        policy,
        _estimates([run.totals for run in runs]),
        {name: _estimates([run.classes[name] for run in runs if name in run.classes]) for name in classes},
        {name: _mean_curve([run.curves[name] for run in runs if run.curves.get(name)]) for name in classes},
        runs[0].owners,
        runs,
    )


def estimate(values: Sequence[float]) -> Estimate:
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Estimate(mean, None)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    student = STUDENT[n - 2] if n - 2 < len(STUDENT) else NORMAL
    return Estimate(mean, student * deviation / math.sqrt(n))


def _estimates(runs: Sequence[Mapping[str, float]]) -> dict[str, Estimate]:
    return {name: estimate([run[name] for run in runs]) for name in runs[0]}


def _mean_curve(curves: Sequence[Sequence[float]]) -> list[float]:
    return [math.fsum(points) / len(points) for points in zip(*curves, strict=True)]


def _plain(estimate: Estimate) -> dict[str, float | None]:
    return {"mean": _rounded(estimate.mean), "within": _rounded(estimate.within)}


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


class Change(NamedTuple):
    """Of one number, by a what-if. Seed by seed, so that what chance does to both is left out."""

    what_if: str
    policy: str
    class_: str  # empty: of all together
    name: str
    before: Estimate
    after: Estimate
    by: Estimate

    @property
    def certain(self) -> bool:
        """It is another number, whatever chance does."""
        return abs(self.by.mean) > max(self.by.within or 0.0, 1e-9)

    def plain(self) -> dict[str, Any]:
        names = {"whatIf": self.what_if, "policy": self.policy, "class": self.class_, "name": self.name}
        numbers = {"before": self.before, "after": self.after, "change": self.by}
        return {**names, **{name: _plain(number) for name, number in numbers.items()}, "certain": self.certain}


def changes(outcomes: Iterable[PolicyOutcome]) -> list[Change]:
    """Of every number, by each what-if beside the same policy without it."""
    kept = list(outcomes)
    before = {o.policy: o for o in kept if not o.what_if}
    return [change for o in kept if o.what_if for change in _changes(before[o.policy], o)]


def _changes(before: PolicyOutcome, after: PolicyOutcome) -> Iterator[Change]:
    for name in after.totals:
        by = [other.totals[name] - one.totals[name] for one, other in zip(before.runs, after.runs, strict=True)]
        yield Change(after.what_if, after.policy, "", name, before.totals[name], after.totals[name], estimate(by))
    for of in after.classes:
        pairs = [
            (one.classes[of], other.classes[of])
            for one, other in zip(before.runs, after.runs, strict=True)
            if of in one.classes and of in other.classes
        ]
        for name in after.classes[of] if pairs else ():
            both = before.classes[of][name], after.classes[of][name]
            yield Change(after.what_if, after.policy, of, name, *both, estimate([b[name] - a[name] for a, b in pairs]))
