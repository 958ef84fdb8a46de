"""Why a pod is refused, and what is odd about one that is not."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final, Literal, NamedTuple

from j10ce.dialects.koordinator.classes import Band, KoordClass, label_findings
from j10ce.dialects.koordinator.names import (
    BATCH_CPU,
    BATCH_MEMORY,
    QOS_LABEL,
    RESERVATION_POD,
    SUB_PRIORITY_LABEL,
)
from j10ce.dialects.koordinator.webhook.pods import PodFacts, facts
from j10ce.dialects.koordinator.webhook.required import NONE_REQUIRED, RequiredLabels
from j10ce.errors import Finding, Invalid
from j10ce.policy.select import Labels

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


def validate(
    pod: Raw,
    old: Raw | None = None,
    *,
    gates: Collection[str] = (),
    namespace: str = "",
    required: RequiredLabels = NONE_REQUIRED,
    literal: bool = False,
) -> list[PodRefusal]:
    """All reasons to refuse a pod; `old` is what it was before an update.

    `literal`: as theirs does, a class that goes with some priorities only is refused where none is given, and a pod
    that runs without a label that is required since may not be touched.
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
        *_required(now, namespace, required, None if before is None or literal else before.labels),
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


def _required(now: PodFacts, namespace: str, rules: RequiredLabels, had: Labels | None) -> Iterator[PodRefusal]:
    for finding in rules.missing(now.labels, namespace, had):
        yield PodRefusal("Forbidden", finding)


def oddities(pod: Raw) -> list[Finding]:
    """What is admitted and hardly meant: labels that are no words, and amounts that do not fit the class."""
    try:
        now = facts(pod)
    except Invalid as e:
        return [*e.findings]
    return [*label_findings(now.labels), *_odd(now)]


def _odd(pod: PodFacts) -> Iterator[Finding]:
    if pod.koord is KoordClass.LSE and pod.band is not Band.NONE and pod.band in FORBIDDEN[KoordClass.LSR]:
        yield Finding(QOS_PATH, "LSE", f"priority class {pod.band.value}", "use a priority of koord-prod")
    if pod.koord in OWN_CPUS and pod.native != "Guaranteed":
        problem = f"class {pod.koord.value}, and {pod.native} to Kubernetes"
        yield Finding(QOS_PATH, pod.koord.value, problem, "let limits equal requests, of CPU and memory")
    if pod.koord is KoordClass.BE and "cpu" in pod.requests:
        hint = f"ask for {BATCH_CPU} instead, or give it a priority of koord-batch"
        yield Finding("spec.containers[*].resources.requests.cpu", str(pod.requests["cpu"]), "class BE", hint)
