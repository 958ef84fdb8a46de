"""Scenarios, run by the simulator; their bands are sentences, and each sentence is a case."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from json import dumps, loads
from typing import Any, Final, NamedTuple

from j10ce.sim.cluster.outcome import RunResult
from j10ce.sim.cluster.simulate import simulate

POLICIES: Final = {"priority_based": "priority", "qos_driven_same_policy": "classic", "better_than_published": "lazy"}
NOT_BANDS: Final = ("prototype_evidence", "pessimistic_variant")
NUMBER = r"([\d.]+)"


class Ran(NamedTuple):
    """`beside`: the same under the policy `priority`."""

    run: RunResult
    beside: RunResult


def sentences(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, said in document["expected"]["acceptance"].items():
        if key not in NOT_BANDS:
            for sentence in said:
                yield f"{key}: {sentence}", {"scenario": document, "policy": POLICIES[key], "sentence": sentence}


def holds(case: Mapping[str, Any]) -> str:
    """Why it does not; empty: it does."""
    text = dumps(scenario_of(case["scenario"]), sort_keys=True)
    ran = Ran(simulated(text, case["policy"]), simulated(text, "priority"))
    plain = re.sub(r" ?\((?!availability)[^)]*\)", "", case["sentence"])
    clauses = re.split(r", | and (?=no )", plain)
    return "; ".join(why for clause in clauses if (why := unmet(clause, ran)))


@cache
def simulated(scenario: str, policy: str) -> RunResult:
    return simulate(loads(scenario), policy, 1)


def scenario_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """As the simulator reads them."""
    nodes, pod, classes = document["nodes"], document["pod"], document["classes"]
    counts = document.get("counts") or document["expected"]["measured_kubernetes"]["priority_based"]["classes"]
    asked = {"cpu": f"{round(pod['cpu'] * 1000)}m", "memory": f"{round(pod['memory'] * 1e6)}Ki"}
    owners = [{"name": name, "class": name, "count": number_of(counts[name]), **asked} for name in counts]
    return {
        "name": document["name"],
        "horizon": f"{document['horizon_s']}s",
        "nodes": [
            {
                "name": "n",
                "count": nodes["count"],
                "cpu": f"{round(nodes['cpu'] * 1000)}m",
                "memory": f"{round(nodes['memory'] * 1e6)}Ki",
            }
        ],
        "classes": {name: {"slo": of["slo"], "priority": of["priority"]} for name, of in classes.items()},
        "owners": owners,
        "arrivals": {"every": "1s", "order": "random"},
        "startOverhead": {f"{seconds}s": often for seconds, often in document["start_overhead_histogram_s"].items()},
        "policies": {
            "classic": {"safetyMargin": "30s", "minimumRunningTime": "180s", "acceptablePreemptionOverhead": 0.05}
        },
    }


def number_of(count: int | Mapping[str, int]) -> int:
    return count if isinstance(count, int) else count["n"]


def unmet(clause: str, ran: Ran) -> str:
    for pattern, judge in BANDS:
        if match := re.fullmatch(pattern, clause.strip()):
            values, good = judge(ran, match.groups())
            return "" if good else f"{clause.strip()!r}: it is {values}"
    return f"no rule is known for {clause.strip()!r}"


Groups = Sequence[str]
Judged = tuple[object, bool]


def means(ran: Ran, given: Groups) -> Judged:
    *names, least = given
    values = [ran.run.classes[name]["availability"] for name in names if name]
    return values, min(values) >= float(least)


def number_in(name: str) -> Callable[[Ran, Groups], Judged]:
    def judge(ran: Ran, given: Groups) -> Judged:
        of, low, high = given
        value = ran.run.classes[of or next(iter(ran.run.classes))][name]
        return value, float(low) <= value <= float(high)

    return judge


def number_below(name: str) -> Callable[[Ran, Groups], Judged]:
    def judge(ran: Ran, given: Groups) -> Judged:
        of, sign, most = given
        value = ran.run.classes[of or next(iter(ran.run.classes))][name]
        return value, value < float(most) or (sign == "<=" and value == float(most))

    return judge


def preemptions(ran: Ran, given: Groups) -> Judged:
    low, high = (given[0], given[0]) if len(given) == 1 else given
    value = ran.run.totals["preemptions"]
    return value, float(low or 0) <= value <= float(high)


def none_short(ran: Ran, given: Groups) -> Judged:
    values = [ran.run.classes[name]["belowByAPoint"] for name in given if name]
    return values, not any(values)


def below(ran: Ran, given: Groups) -> Judged:
    low, high, of = given
    value = ran.run.classes[of or next(iter(ran.run.classes))]["belowSlo"]
    return value, float(low) <= value <= float(high or low)


def starving(ran: Ran, given: Groups) -> Judged:
    value = sum(owner.availability < float(given[2]) for owner in ran.run.owners)
    return value, int(given[0]) <= value <= int(given[1])


def rest(ran: Ran, given: Groups) -> Judged:
    values = [owner.availability for owner in ran.run.owners if owner.availability >= 0.1]
    return values, min(values, default=1.0) >= float(given[0])


def least(ran: Ran, given: Groups) -> Judged:
    value = min(owner.availability for owner in ran.run.owners)
    return value, value >= float(given[0])


def smaller(ran: Ran, given: Groups) -> Judged:
    of, times = given
    value, other = ran.run.classes[of]["deficit"], ran.beside.classes[of]["deficit"]
    return (value, other), value * float(times) <= other


BANDS: Final[Sequence[tuple[str, Callable[[Ran, Groups], Judged]]]] = (
    (rf"(?:(\w+) and )?(\w+) mean >= {NUMBER}", means),
    (rf"(\w+) mean in \[{NUMBER},{NUMBER}\]", number_in("availability")),
    (rf"(?:(\w+) )?Gini in \[{NUMBER},{NUMBER}\]", number_in("gini")),
    (rf"(?:(\w+) )?Gini (<=?) {NUMBER}", number_below("gini")),
    (rf"(?:(\w+) )?mean deficit (<=?) {NUMBER}", number_below("deficit")),
    (rf"(\w+) mean deficit at least {NUMBER} times smaller than priority_based", smaller),
    (rf"preemptions in \[{NUMBER},{NUMBER}\]", preemptions),
    (rf"preemptions <=() ?{NUMBER}", preemptions),
    (r"(\d+) preemptions", preemptions),
    (r"no (\w+)(?: or (\w+))?(?: pod)? more than 0\.01 below (?:its )?SLO", none_short),
    (r"(\d+)(?:\.\.(\d+))? of \d+ ?(\w*?) ?below SLO", below),
    (rf"(\d+) or (\d+) of \d+ starve \(availability < {NUMBER}\)", starving),
    (rf"the rest >= {NUMBER}", rest),
    (rf"min availability >= {NUMBER}", least),
)
