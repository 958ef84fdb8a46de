"""Whose account a pod is on, what its SLO is, and how it is measured: by its annotations, else by its owner."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from j10ce.errors import shown
from j10ce.scheduler.book.facts import OwnerFacts, PodFacts

CONTROLLER: Final = "controller"
SLO: Final = "slo"
MEASURING: Final = "qosMeasuring"
OVERHEAD: Final = "acceptablePreemptionOverhead"
DEFAULT_SLO: Final = 0.80
NOBODY: Final = ""  # the account that pods without an annotation share, in classic mode
MOST_NAME: Final = 512  # characters of what names an account
SYSTEM: Final = "kube-system"  # never followed, never preempted

Approach: TypeAlias = Literal["independent", "average", "aggregate", "concurrent"]
APPROACHES: Final[Mapping[str, Approach]] = {
    "independent": "independent",
    "average": "average",
    "aggregate": "aggregate",
    "concurrent": "concurrent",
    "time_aggregated": "average",  # two names of old
    "task_aggregated": "aggregate",
}
_FLOAT: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)|nan", re.IGNORECASE | re.ASCII)


class Identity(NamedTuple):
    """`acceptable`: share of its time that preemptions may cost it, as its annotation says; None: it says nothing.
    `name`: as people see the account, where that is not its key."""

    key: str
    slo: float
    approach: Approach
    acceptable: float | None
    slots: int
    completions: int
    faults: tuple[str, ...] = ()
    name: str = ""

    @property
    def shown(self) -> str:
        return self.name or self.key


def identified(pod: PodFacts, default_slo: float = DEFAULT_SLO, shared: bool = False) -> Identity:
    """What is wrong in its annotations is as if it were not there, and a fault."""
    slo, slo_faults = _share(_slo_text(pod), default_slo, f"annotation {SLO}")
    acceptable, overhead_faults = _share(pod.annotations.get(OVERHEAD, ""), None, f"annotation {OVERHEAD}")
    owner = owner_of(pod)
    kind = owner.kind if owner else None
    word = approach_written(pod.annotations, kind)
    approach = APPROACHES.get(word)
    faults = [*_key_faults(pod), *slo_faults, *overhead_faults]
    if approach is None:
        approach = by_kind(kind)
        faults.append(f"annotation {MEASURING} = {shown(word)}: use one of {', '.join(sorted({*APPROACHES.values()}))}")
    slots, completions = (max(owner.slots, 0), owner.completions) if owner else (1, 0)
    return Identity(
        *(key_of(pod, shared), DEFAULT_SLO if slo is None else slo, approach, acceptable, slots, completions),
        (*faults,),
        pod.annotations.get(CONTROLLER, "") if names_account(pod) else "",
    )


def key_of(pod: PodFacts, shared: bool = False) -> str:
    """`shared`, as of old: pods without the annotation have one account together, and equal annotations are one account
    whatever the namespace. Else nobody gets at the account of another namespace."""
    if names_account(pod):
        key = pod.annotations[CONTROLLER]
        return key if shared else f"{pod.namespace}/{key}"
    if shared:
        return NOBODY
    if (owner := owner_of(pod)) is None:
        return f"{pod.namespace}/Pod/{pod.name}"
    return f"{owner.namespace or pod.namespace}/{owner.kind}/{owner.name}"


def names_account(pod: PodFacts) -> bool:
    """By its annotation."""
    key = pod.annotations.get(CONTROLLER, "")
    return bool(key) and _is_name(key)


def owner_of(pod: PodFacts) -> OwnerFacts | None:
    """None for what no API server would have, but whoever makes a pod may write into its references."""
    owner = pod.owner
    return owner if owner is not None and _is_name(f"{owner.kind}/{owner.name}") else None


def _is_name(text: str) -> bool:
    """It is shown in terminals and written down: short, and without anything that acts there."""
    return len(text) <= MOST_NAME and text.isprintable()


def _key_faults(pod: PodFacts) -> tuple[str, ...]:
    if (key := pod.annotations.get(CONTROLLER)) and not names_account(pod):
        return (f"annotation {CONTROLLER} = {shown(key)}: at most {MOST_NAME} printable characters are a name",)
    return ()


def approach_written(annotations: Mapping[str, str], kind: str | None) -> str:
    return annotations.get(MEASURING) or by_kind(kind)


def by_kind(kind: str | None) -> Approach:
    match kind:
        case None:
            return "independent"
        case "Job":
            return "aggregate"
        case _:
            return "average"


def number_in(text: str) -> float | None:
    """As Go reads numbers: digits that say more than the largest one are none."""
    if len(text) > 64 or not _FLOAT.fullmatch(text):
        return None
    number = float(text)
    return None if math.isinf(number) and text[-1].isdigit() else number


def acceptable_overhead(slo: float, annotated: float | None, default: float) -> float:
    """Nobody accepts to lose more than its SLO leaves."""
    return min(1 - slo, default if annotated is None else annotated)


def _slo_text(pod: PodFacts) -> str:
    return pod.annotations.get(SLO, "") or (pod.owner.slo if pod.owner else "")


def _share(text: str, default: float | None, name: str) -> tuple[float | None, tuple[str, ...]]:
    if not text:
        return default, ()
    number = number_in(text)
    if number is not None and 0 <= number <= 1:
        return number, ()
    instead = "as if it were not there" if default is None else f"{default:.2f} is taken"
    return default, (f"{name} = {shown(text)}: a number from 0 to 1 is needed, such as 0.95; {instead}",)
