"""A ClusterColocationProfile, and which pods it is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec import UNSET, UnsetType, field
from msgspec.structs import replace

from j10ce.dialects.koordinator.classes import INT32, Labels
from j10ce.dialects.koordinator.config.fields import Class, Map
from j10ce.dialects.koordinator.reading import below, checked
from j10ce.errors import Finding
from j10ce.model import bounds
from j10ce.model.bounds import Word
from j10ce.model.kinds import Selector
from j10ce.model.kube.native import without_nulls
from j10ce.model.parts.strict import Strict
from j10ce.policy.select import matches

ALWAYS: Final = 100
WORDS: Final = ("namespaceSelector", "selector")


class ProfileSpec(Strict, frozen=True, kw_only=True):
    namespace_selector: Any = UNSET  # read apart: one that cannot be read must not be taken for none
    selector: Any = UNSET
    probability: int | Word | UnsetType = UNSET
    qos_class: Class | UnsetType = UNSET
    priority_class_name: Word = ""
    koordinator_priority: int | UnsetType = UNSET
    labels: bounds.Labels = field(default_factory=dict)
    annotations: bounds.Annotations = field(default_factory=dict)
    label_keys_mapping: bounds.Labels = field(default_factory=dict)
    annotation_keys_mapping: bounds.Labels = field(default_factory=dict)
    label_suffixes: bounds.Labels = field(default_factory=dict)
    scheduler_name: Word = ""
    patch: Map = field(default_factory=dict)


class ColocationProfile(NamedTuple):
    name: str
    spec: ProfileSpec
    namespaces: Selector | None  # None: all
    pods: Selector | None
    percent: int = ALWAYS
    unreadable: bool = False  # a selector is not one
    keeps_resources: bool = False  # by its annotation


def read_profile(
    name: str, spec: object, *, keeps_resources: bool = False
) -> tuple[ColocationProfile | None, list[Finding]]:
    """None where anything but a selector is wrong: it is not applied then."""
    path = f"ClusterColocationProfile/{name}.spec"
    plain = without_nulls(spec)
    read, findings = checked(plain, ProfileSpec, path)
    if read is None:
        return None, findings
    if isinstance(spec, dict) and isinstance(patch := spec.get("patch"), dict):
        read = replace(read, patch=patch)  # its nulls remove fields
    rules = [*below(path, _rules(read))]
    selectors = [_selector(value, f"{path}.{word}") for word, value in zip(WORDS, _selectors(read), strict=True)]
    percent = _percent(read.probability)
    findings += [*rules, *(finding for _, problems in selectors for finding in problems)]
    if rules or percent is None:
        return None, findings
    unreadable = any(problems for _, problems in selectors)
    namespaces, pods = (selector for selector, _ in selectors)
    return ColocationProfile(name, read, namespaces, pods, percent, unreadable, keeps_resources), findings


def _selectors(spec: ProfileSpec) -> tuple[Any, Any]:
    return spec.namespace_selector, spec.selector


def _selector(value: Any, path: str) -> tuple[Selector | None, list[Finding]]:
    if value is UNSET:
        return None, []
    selector, findings = checked(value, Selector, path)
    for n, r in enumerate(selector.match_expressions if selector is not None else ()):
        if (r.operator in ("In", "NotIn")) != bool(r.values):
            hint = "In and NotIn need values, the others take none"
            findings.append(Finding(f"{path}.matchExpressions[{n}].values", [*r.values], "does not fit", hint))
    return selector, findings


def _rules(spec: ProfileSpec) -> Iterator[Finding]:
    if _percent(spec.probability) is None:
        value = spec.probability if spec.probability is not UNSET else None
        yield Finding("probability", value, "not a percentage", "use 0 to 100, or a text such as 50%")
    if spec.koordinator_priority is not UNSET and spec.koordinator_priority not in INT32:
        yield Finding("koordinatorPriority", spec.koordinator_priority, "out of range", "use a number of 32 bits")


def _percent(probability: int | str | UnsetType) -> int | None:
    if probability is UNSET:
        return ALWAYS
    if isinstance(probability, str):
        digits = probability.removesuffix("%")
        sound = probability.endswith("%") and digits.isascii() and digits.isdecimal() and len(digits) <= 3
        probability = int(digits) if sound else -1
    return probability if 0 <= probability <= ALWAYS else None


def is_for(profile: ColocationProfile, namespace_labels: Labels, labels: Labels, *, literal: bool = False) -> bool:
    """`literal`: a selector that cannot be read selects everything, as theirs does; otherwise it selects nothing."""
    if profile.unreadable:
        return literal
    pairs = ((profile.namespaces, namespace_labels), (profile.pods, labels))
    return all(selector is None or matches(selector, has) for selector, has in pairs)


def is_drawn(profile: ColocationProfile, draw: int) -> bool:
    """`draw` is one of 0 to 99. A draw that equals the percentage is taken, so that 50 % are 51 of 100."""
    return profile.percent == ALWAYS or (profile.percent > 0 and draw <= profile.percent)
