"""Which class and which priority a pod has, by its labels, its priority and Kubernetes' own class.

class      label, else by Kubernetes' class: Guaranteed is LSR, Burstable is LS, BestEffort is BE
band       label, else the band of spec.priority, else by the class: BE is batch, the others prod
priority   spec.priority unless it is 0, else the band's default
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from j10ce.dialects.koordinator.names import PRIORITY_CLASS_LABEL, QOS_LABEL, SUB_PRIORITY_LABEL
from j10ce.errors import Finding
from j10ce.model.kinds import Tier
from j10ce.model.kube.pod import PodResources
from j10ce.model.text.near import one_of
from j10ce.model.workload import NativeClass

Labels = Mapping[str, str]
E = TypeVar("E", bound=Enum)
NATIVE_RESOURCES: Final = ("cpu", "memory")  # those that Kubernetes classifies by
INT32: Final = range(-(2**31), 2**31)


class KoordClass(Enum):
    NONE = ""
    SYSTEM = "SYSTEM"
    LSE = "LSE"
    LSR = "LSR"
    LS = "LS"
    BE = "BE"


class Band(Enum):
    NONE = ""
    PROD = "koord-prod"
    MID = "koord-mid"
    BATCH = "koord-batch"
    FREE = "koord-free"


class BandRange(NamedTuple):
    priorities: range
    default: int  # where only the band is known
    installed: int  # of the PriorityClass that its chart brings


class Ours(NamedTuple):
    """What a class is called here."""

    profile: str
    tier: Tier


BANDS: Final = {
    Band.PROD: BandRange(range(9000, 10_000), 9500, 9000),
    Band.MID: BandRange(range(7000, 8000), 7500, 7000),
    Band.BATCH: BandRange(range(5000, 6000), 5500, 5000),
    Band.FREE: BandRange(range(3000, 4000), 3500, 3000),
}
PROFILES: Final = {
    KoordClass.SYSTEM: Ours("system", Tier.SYSTEM),
    KoordClass.LSE: Ours("lse", Tier.EXCLUSIVE),
    KoordClass.LSR: Ours("lsr", Tier.RESERVED),
    KoordClass.LS: Ours("ls", Tier.SENSITIVE),
    KoordClass.BE: Ours("be", Tier.BESTEFFORT),
}
BY_NATIVE: Final[Mapping[NativeClass, KoordClass]] = {
    "Guaranteed": KoordClass.LSR,
    "Burstable": KoordClass.LS,
    "BestEffort": KoordClass.BE,
}


def class_of(labels: Labels) -> KoordClass:
    """By the label alone; a word that is no class is none."""
    return _member(KoordClass, labels.get(QOS_LABEL, "")) or KoordClass.NONE


def class_or_default(labels: Labels, native: NativeClass) -> KoordClass:
    asked = class_of(labels)
    return asked if asked is not KoordClass.NONE else BY_NATIVE[native]


def band_at(priority: int | None) -> Band:
    return next((band for band, held in BANDS.items() if priority in held.priorities), Band.NONE)


def band_of(labels: Labels, priority: int | None) -> Band:
    """By label or number. A label that is no band is none, and the number does not count then."""
    if PRIORITY_CLASS_LABEL in labels:
        return _member(Band, labels[PRIORITY_CLASS_LABEL]) or Band.NONE
    return band_at(priority)


def band_or_default(labels: Labels, priority: int | None, native: NativeClass) -> Band:
    asked = band_of(labels, priority)
    return asked if asked is not Band.NONE else band_by_class(class_or_default(labels, native))


def band_by_class(koord: KoordClass) -> Band:
    match koord:
        case KoordClass.NONE:
            return Band.NONE
        case KoordClass.BE:
            return Band.BATCH
        case KoordClass.SYSTEM | KoordClass.LSE | KoordClass.LSR | KoordClass.LS:
            return Band.PROD


def sub_priority(labels: Labels) -> int | None:
    """Within a band; None where it is not said, or no number."""
    return integer(labels.get(SUB_PRIORITY_LABEL, ""), INT32)


def integer(text: str, within: range) -> int | None:
    """A decimal number of a label; None where it is none, or beyond."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 19):
        return None
    return number if (number := int(text)) in within else None


def native_class(containers: Iterable[PodResources]) -> NativeClass:
    """Kubernetes' own rule: Guaranteed if every container has limits of both that equal its requests, BestEffort if
    none asks for either."""
    asked = [(_native(c.requests), _native(c.limits)) for c in containers]
    if not any(requests or limits for requests, limits in asked):
        return "BestEffort"
    equal = all(len(limits) == len(NATIVE_RESOURCES) and limits | requests == limits for requests, limits in asked)
    return "Guaranteed" if equal else "Burstable"


def _native(amounts: Mapping[str, object]) -> dict[str, object]:
    return {name: amounts[name] for name in NATIVE_RESOURCES if getattr(amounts.get(name), "amount", 0)}


def label_findings(labels: Labels) -> Iterator[Finding]:
    """What is wrong with the labels that concern a class; the pod runs all the same."""
    for key, words in ((QOS_LABEL, KoordClass), (PRIORITY_CLASS_LABEL, Band)):
        value = labels.get(key, "")
        if value and _member(words, value) is None:
            known = [str(word.value) for word in words if word.value]
            yield Finding(f"metadata.labels.{key}", value, "not one of the known words", one_of(value, known))
    value = labels.get(SUB_PRIORITY_LABEL, "")
    if value and sub_priority(labels) is None:
        yield Finding(f"metadata.labels.{SUB_PRIORITY_LABEL}", value, "not a number", "use a number of 32 bits")


def _member(words: type[E], value: str) -> E | None:
    return next((word for word in words if word.value == value), None)
