"""What each section of a case file means: a rule of the product for each."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from j10ce.errors import Invalid
from j10ce.scheduler.accounts.duration import spelled_ns
from j10ce.scheduler.accounts.identity import DEFAULT_SLO, approach_written, identified, number_in
from j10ce.scheduler.accounts.measure import Measure, PodCounts, ServiceSums
from j10ce.scheduler.book.facts import OwnerFacts, PodFacts
from j10ce.scheduler.extender.wire import question, read_filter, read_preempt
from j10ce.scheduler.plugins.classic.rules import Wish, may_preempt, precedes
from tests.qos_scheduler.measured import measured
from tests.qos_scheduler.scenarios import holds

TOLERANCE: Final = 1e-6
Case = Mapping[str, Any]


class Unmet(Exception):
    """A case says otherwise."""


def slo(case: Case) -> None:
    number = number_in(case["annotations"].get("slo", ""))
    equal("slo", DEFAULT_SLO if number is None else number, case["slo"])


def approach(case: Case) -> None:
    equal("approach", approach_written(case["annotations"], case["owner_kind"]), case["approach"])


def slots(case: Case) -> None:
    spec, kind = case["spec"], case["owner_kind"]
    held = spec.get("parallelism", spec.get("replicas", 1))
    owner = kind and OwnerFacts(kind, "default", "o", slots=held, completions=spec.get("completions", 0))
    identity = identified(PodFacts("u", "default", "p", owner=owner or None))
    equal("slots", identity.slots, case["slots"])
    equal("expected_completions", identity.completions, case["expected_completions"])


def durations(case: Case) -> None:
    equal("text", spelled_ns(case["ns"]), case["text"])


def metrics(case: Case) -> None:
    got = measured(case["input"])
    for name, want in case["expected"].items():
        equal(name, got[name], want)


def can_preempt(case: Case) -> None:
    given = case["input"]
    victim = Measure(
        ServiceSums(0.0, 0.0, 0.0, 0.0, 1),
        PodCounts(0, 0, 0, 1),
        given["victim_importance"],
        number(given["victim_metric"]),
        number(given["victim_preemption_overhead"]),
        given["victim_acceptable_overhead"],
        given["victim_contributing"],
        given["victim_runtime_s"],
    )
    wish = Wish(given["same_controller"], given["pending_approach"], given["pending_importance"], victim)
    answer = may_preempt(wish, given["safety_margin_s"], given["min_running_s"])
    if answer.allowed != case["expected"]:
        raise Unmet(f"{answer.allowed} by rule {answer.rule!r}, wanted {case['expected']} by {case.get('rule')!r}")


def order(case: Case) -> None:
    """Whether a comes before b."""
    given = case["input"]
    a, b = given["a"], given["b"]
    metrics_of = number(a["metric"]), a["importance"], number(b["metric"]), b["importance"]
    equal("a before b", precedes(*metrics_of, given["safety_margin_s"]), case["expected"])


def texts(case: Case) -> None:
    """What kube-scheduler sends is read, and keys of answers are capitalised."""
    whole = json.loads(case["json"])
    text = case["json"].encode()
    try:
        match case["type"]:
            case "ExtenderArgs":
                equal("names", list(read_filter(question(text)).nodes), whole["NodeNames"] or [])
            case "ExtenderPreemptionArgs":
                equal("nodes", sorted(read_preempt(text).victims), sorted(whole["NodeNameToMetaVictims"] or {}))
            case _:
                equal("capitalised keys", all(key[:1].isupper() for key in whole), True)
    except Invalid as refused:
        raise Unmet(f"refused: {refused}") from None


def semantics(case: Case) -> None:
    """Sentences about kube-scheduler: there is nothing of ours to ask."""
    equal("an effect is said", bool(case["case"] and case["effect"]), True)


def acceptance(case: Case) -> None:
    if why := holds(case):
        raise Unmet(why)


def equal(name: str, got: Any, want: Any) -> None:
    if isinstance(want, bool) or not isinstance(got, int | float):
        same = got == want
    else:
        same = close(float(got), number(want))
    if not same:
        raise Unmet(f"{name} is {got!r}, wanted {want!r}")


def close(got: float, want: float) -> bool:
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    return math.isclose(got, want, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def number(written: float | str) -> float:
    return float(written)


SECTIONS: Final[Mapping[str, Callable[[Any], None]]] = {
    "slo": slo,
    "approach": approach,
    "slots": slots,
    "durations": durations,
    "cases": metrics,
    "can_preempt": can_preempt,
    "order": order,
    "texts": texts,
    "semantics": semantics,
    "acceptance": acceptance,
}
