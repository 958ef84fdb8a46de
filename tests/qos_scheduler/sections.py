"""What each section of a case file means: a rule of the product for each."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from j10ce.errors import Invalid
from j10ce.model.kube.native import decode_native, without_nulls
from j10ce.model.kube.surroundings import PodOwner
from j10ce.scheduler.accounts.duration import spelled_ns
from j10ce.scheduler.accounts.identity import DEFAULT_SLO, approach_written, identified, number_in
from j10ce.scheduler.accounts.measure import Measure, PodCounts, ServiceSums
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.extender.wire import (
    FilterAnswer,
    HostPriority,
    MetaPod,
    MetaVictims,
    PreemptAnswer,
    question,
    read_filter,
    read_preempt,
)
from j10ce.scheduler.plugins.classic.rules import Wish, may_preempt, precedes, sort_key
from j10ce.scheduler.reading.owners import Owners
from tests.qos_scheduler.choosing import chosen
from tests.qos_scheduler.lives import lived, shown
from tests.qos_scheduler.measured import clock_of, measured
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
    """The object is read as it comes from an API server."""
    kind, whole = case["owner_kind"], {"metadata": {"name": "o", "namespace": "default"}, "spec": case["spec"]}
    owner = Owners().put(kind, decode_native(json.dumps(without_nulls(whole)).encode(), PodOwner)) if kind else None
    identity = identified(PodFacts("u", "default", "p", owner=owner))
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
    whole = {key.lower(): value for key, value in json.loads(case["json"]).items()}
    text = case["json"].encode()
    try:
        match case["type"]:
            case "ExtenderArgs":
                call = read_filter(question(text))
                equal("names", list(call.nodes), whole.get("nodenames") or [])
                equal("pod", call.pod.metadata.name, whole["pod"]["metadata"]["name"])
            case "ExtenderPreemptionArgs":
                asked = read_preempt(text).victims
                equal("nodes", sorted(asked), sorted(whole.get("nodenametometavictims") or {}))
            case kind:
                answered(kind, whole)
    except Invalid as refused:
        raise Unmet(f"refused: {refused}") from None


def answered(kind: str, whole: Case) -> None:
    """What we would answer in these words is spelled like this, but for nodes, which we never send whole."""
    match kind:
        case "ExtenderFilterResult":
            ours: Any = FilterAnswer(
                node_names=Raw(json.dumps(whole["nodenames"]).encode()),
                failed_nodes=whole["failednodes"],
                failed_and_unresolvable_nodes=whole["failedandunresolvablenodes"],
                error=whole["error"],
            )
            whole = {**whole, "nodes": None}
        case "HostPriority":
            ours = HostPriority(whole["host"], whole["score"])
        case "ExtenderPreemptionResult":
            victims = {
                node: MetaVictims([MetaPod(pod["UID"]) for pod in of["Pods"]], of["NumPDBViolations"])
                for node, of in (whole["nodenametometavictims"] or {}).items()
            }
            ours = PreemptAnswer(victims)
        case "ExtenderBindingArgs" | "ExtenderBindingResult":  # no binding is ours to do
            return
        case _:
            raise Unmet(f"no message {kind!r} is known")
    spelled = json.loads(msgspec.json.encode(ours))
    equal("keys", all(key[:1].isupper() for key in spelled), True)
    equal("answer", {key.lower(): value for key, value in spelled.items()}, whole)


def lives(case: Case) -> None:
    got = lived(case["input"])
    for name, want in case["expected"].items():
        equal(name, got[name], want)


def clocks(case: Case) -> None:
    given = case["input"]
    clock, now = clock_of({"succeeded": False, **given}), given["now"]
    for name, want in case["expected"].items():
        equal(name, getattr(clock, name)(now), want)


def tables(case: Case) -> None:
    equal("text", shown(case["input"]), case["text"])


def victims(case: Case) -> None:
    got = chosen(case["input"])
    for name, want in case["expected"].items():
        equal(name, got[name], sorted(want) if name == "victims" else want)


def queue(case: Case) -> None:
    """A whole queue in its order, whatever order it comes in."""
    given = case["input"]
    pods = [(number(p["metric"]), p["importance"], p["name"]) for p in given["pods"]]
    for come in (pods, pods[::-1]):
        inorder = sorted(come, key=lambda p: sort_key(p[0], p[1], given["safety_margin_s"]))
        equal("order", [name for _, _, name in inorder], case["expected"])


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
    "queue": queue,
    "clocks": clocks,
    "lives": lives,
    "tables": tables,
    "victims": victims,
    "texts": texts,
    "semantics": semantics,
    "acceptance": acceptance,
}
