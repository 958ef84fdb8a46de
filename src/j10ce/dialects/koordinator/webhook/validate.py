"""Why a pod is refused, and what is odd about one that is not."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final, Literal, NamedTuple

from msgspec import field

from j10ce.dialects.koordinator.classes import Band, KoordClass, label_findings
from j10ce.dialects.koordinator.names import (
    BATCH_CPU,
    BATCH_MEMORY,
    QOS_LABEL,
    RESERVATION_POD,
    SKIP_VALIDATION_LABEL,
    SUB_PRIORITY_LABEL,
)
from j10ce.dialects.koordinator.webhook.pods import PodFacts, facts
from j10ce.errors import Finding, Invalid
from j10ce.model.bounds import Several, Word, Words
from j10ce.model.parts.strict import Strict

Raw = dict[str, Any]
RefusalKind = Literal["Required", "Invalid", "Forbidden"]
SKIP_PRIORITY: Final = "ColocationProfileSkipValidatingPriority"
FORBIDDEN: Final = {
    KoordClass.BE: (Band.NONE, Band.PROD),
    KoordClass.LSR: (Band.NONE, Band.MID, Band.BATCH, Band.FREE),
}
OWN_CPUS: Final = (KoordClass.LSR, KoordClass.LSE)
QOS_PATH: Final = f"metadata.labels.{QOS_LABEL}"
SUB_PATH: Final = f"metadata.labels.{SUB_PRIORITY_LABEL}"


class PodRefusal(NamedTuple):
    kind: RefusalKind
    finding: Finding


class LabelRule(Strict, frozen=True, kw_only=True):
    name: Word = ""
    required_labels: Words = ()
    namespace_whitelist: Words = ()


class EnhancedRules(Strict, frozen=True, kw_only=True):
    """ConfigMap `pod-enhanced-validator-config`."""

    enable: bool = False
    rules: Several[LabelRule] = field(default_factory=tuple)


def validate(
    pod: Raw,
    old: Raw | None = None,
    *,
    gates: Collection[str] = (),
    namespace: str = "",
    enhanced: EnhancedRules | None = None,
    literal: bool = False,
) -> list[PodRefusal]:
    """All reasons to refuse a pod; `old` is what it was before an update.

    `literal`: a class that goes with some priorities only is refused where none is given, too, as theirs does.
    """
    try:
        now, before = facts(pod), facts(old) if old is not None else None
    except Invalid as e:
        return [PodRefusal("Invalid", finding) for finding in e.findings]
    return [
        *(_immutable(now, before, gates) if before is not None else ()),
        *_batch(now),
        *_combination(now, literal),
        *_own_cpus(now),
        *_reservation(now),
        *(_enhanced(now, namespace, enhanced) if enhanced is not None else ()),
    ]


def _immutable(now: PodFacts, before: PodFacts, gates: Collection[str]) -> Iterator[PodRefusal]:
    hint = "create another pod"
    if now.koord is not before.koord:
        problem = f"is immutable; it was {before.koord.value or 'none'}"
        yield PodRefusal("Invalid", Finding(QOS_PATH, now.koord.value, problem, hint))
    if now.band is not before.band:
        problem = f"the priority class is immutable; it was {before.band.value or 'none'}"
        yield PodRefusal("Invalid", Finding("spec.priority", now.band.value, problem, hint))
    new, old = (pod.labels.get(SUB_PRIORITY_LABEL) for pod in (now, before))
    if new != old and SKIP_PRIORITY not in gates:
        yield PodRefusal("Invalid", Finding(SUB_PATH, new, f"is immutable; it was {old}", hint))


def _batch(pod: PodFacts) -> Iterator[PodRefusal]:
    asked = [name for name in (BATCH_CPU, BATCH_MEMORY) if name in pod.requests and pod.requests[name].amount]
    if asked and pod.koord is not KoordClass.BE:
        problem = f"a pod that asks for {asked[0]} must be BE"
        yield PodRefusal("Required", Finding(QOS_PATH, pod.koord.value, problem, f"label it {QOS_LABEL}: BE"))


def _combination(pod: PodFacts, literal: bool) -> Iterator[PodRefusal]:
    given = literal or pod.band is not Band.NONE
    if given and pod.band in FORBIDDEN.get(pod.koord, ()):
        problem = f"class {pod.koord.value} and priority class {pod.band.value or 'none'} do not go together"
        allowed = [b.value for b in Band if b.value and b not in FORBIDDEN[pod.koord]]
        hint = f"use a priority of {', '.join(allowed)}"
        yield PodRefusal("Forbidden", Finding(QOS_PATH, pod.koord.value, problem, hint))


def _own_cpus(pod: PodFacts) -> Iterator[PodRefusal]:
    if pod.koord not in OWN_CPUS:
        return
    milli = pod.requests["cpu"].millicores() if "cpu" in pod.requests else 0
    path = "spec.containers[*].resources.requests.cpu"
    if milli <= 0:
        problem = f"class {pod.koord.value} needs CPUs"
        yield PodRefusal("Required", Finding(path, None, problem, "ask for 1 or more"))
    elif milli % 1000:
        problem = f"class {pod.koord.value} needs whole CPUs"
        yield PodRefusal("Invalid", Finding(path, f"{milli}m", problem, f"ask for {-(-milli // 1000)}"))


def _reservation(pod: PodFacts) -> Iterator[PodRefusal]:
    if RESERVATION_POD in pod.annotations:
        finding = Finding(f"metadata.annotations.{RESERVATION_POD}", None, "is the scheduler's own", "remove it")
        yield PodRefusal("Forbidden", finding)


def _enhanced(pod: PodFacts, namespace: str, rules: EnhancedRules) -> Iterator[PodRefusal]:
    if not rules.enable or pod.labels.get(SKIP_VALIDATION_LABEL) == "true":
        return
    for rule in rules.rules:
        for label in rule.required_labels if namespace not in rule.namespace_whitelist else ():
            if label not in pod.labels:
                problem = f"missing; rule {rule.name} requires it"
                yield PodRefusal("Forbidden", Finding(f"metadata.labels.{label}", None, problem, "label the pod"))


def oddities(pod: Raw) -> list[Finding]:
    """What is admitted and hardly meant: labels that are no words, and amounts that do not fit the class."""
    try:
        now = facts(pod)
    except Invalid as e:
        return [*e.findings]
    return [*label_findings(now.labels), *_odd(now)]


def _odd(pod: PodFacts) -> Iterator[Finding]:
    if pod.koord is KoordClass.LSE and pod.band in FORBIDDEN[KoordClass.LSR]:
        yield Finding(QOS_PATH, "LSE", f"priority class {pod.band.value or 'none'}", "use a priority of koord-prod")
    if pod.koord in OWN_CPUS and pod.native != "Guaranteed":
        problem = f"class {pod.koord.value}, and {pod.native} to Kubernetes"
        yield Finding(QOS_PATH, pod.koord.value, problem, "let limits equal requests, of CPU and memory")
    if pod.koord is KoordClass.BE and "cpu" in pod.requests:
        hint = f"ask for {BATCH_CPU} instead, or give it a priority of koord-batch"
        yield Finding("spec.containers[*].resources.requests.cpu", str(pod.requests["cpu"]), "class BE", hint)
