"""Profiles applied to a pod that is created."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import UNSET

from j10ce.dialects.koordinator.classes import Labels
from j10ce.dialects.koordinator.names import EXTENDED_RESOURCES, QOS_LABEL, SUB_PRIORITY_LABEL
from j10ce.dialects.koordinator.webhook.patch import patched
from j10ce.dialects.koordinator.webhook.pods import facts
from j10ce.dialects.koordinator.webhook.profile import ColocationProfile, ProfileSpec, is_drawn, is_for
from j10ce.dialects.koordinator.webhook.resources import extended_spec, rewritten
from j10ce.errors import Finding, Invalid

Raw = dict[str, Any]


class PriorityClass(NamedTuple):
    value: int
    preemption_policy: str = ""


class Mutation(NamedTuple):
    """`refused` says why the pod is not created at all; it is as it was then."""

    pod: Raw
    applied: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    refused: Finding | None = None


def mutate(
    pod: Raw,
    namespace_labels: Labels,
    profiles: Iterable[ColocationProfile],
    priority_classes: Mapping[str, PriorityClass],
    draw: Callable[[str], int],
    *,
    keep_resources: bool = False,
    literal: bool = False,
) -> Mutation:
    """The pod after all profiles that are for it, in the order of their names, with batch or mid amounts.

    `draw` gives one of 0 to 99 for a profile. Amounts are rewritten by the priority of the pod, whether a profile
    was applied or not, unless `keep_resources` or a profile that is for it says otherwise.
    """
    try:
        labels = facts(pod).labels
    except Invalid as e:
        return Mutation(pod, findings=e.findings)
    chosen = (p for p in profiles if is_for(p, namespace_labels, labels, literal=literal))
    fitting = sorted(chosen, key=lambda profile: profile.name)
    drawn = [p for p in fitting if is_drawn(p, draw(p.name))]
    fresh = pod
    for profile in drawn:
        name = profile.spec.priority_class_name
        if name and name not in priority_classes:
            path = f"ClusterColocationProfile/{profile.name}.spec.priorityClassName"
            return Mutation(pod, refused=Finding(path, name, "no such PriorityClass", "create it, or name another"))
        fresh = _applied(fresh, profile.spec, priority_classes)
    names = tuple(profile.name for profile in drawn)
    if keep_resources or any(profile.keeps_resources for profile in fitting):
        return Mutation(fresh, names)
    return _with_amounts(fresh, names)


def _with_amounts(pod: Raw, applied: tuple[str, ...]) -> Mutation:
    try:
        band = facts(pod).resulting
    except Invalid as e:  # a patch made something else of it
        return Mutation(pod, applied, e.findings)
    fresh, findings = rewritten(pod, band)
    spec = extended_spec(fresh)
    annotated = fresh if spec is None else _with(fresh, "annotations", {EXTENDED_RESOURCES: spec})
    return Mutation(annotated, applied, tuple(findings))


def _applied(pod: Raw, spec: ProfileSpec, classes: Mapping[str, PriorityClass]) -> Raw:
    fresh = _with(_with(pod, "labels", spec.labels), "annotations", spec.annotations)
    fresh = _with(fresh, "labels", _copied(_words(fresh, "labels"), spec.label_keys_mapping))
    fresh = _with(fresh, "annotations", _copied(_words(fresh, "annotations"), spec.annotation_keys_mapping))
    labels = _words(fresh, "labels")
    fresh = _with(fresh, "labels", {k: f"{labels[k]}{end}" for k, end in spec.label_suffixes.items() if k in labels})
    if spec.qos_class is not UNSET:
        fresh = _with(fresh, "labels", {QOS_LABEL: spec.qos_class})
    if spec.koordinator_priority is not UNSET:
        fresh = _with(fresh, "labels", {SUB_PRIORITY_LABEL: str(spec.koordinator_priority)})
    return patched({**fresh, "spec": {**_mapping(fresh, "spec"), **_spec(spec, classes)}}, spec.patch)


def _spec(spec: ProfileSpec, classes: Mapping[str, PriorityClass]) -> Raw:
    fields: Raw = {"schedulerName": spec.scheduler_name} if spec.scheduler_name else {}
    if spec.priority_class_name:
        chosen = classes[spec.priority_class_name]
        fields |= {"priorityClassName": spec.priority_class_name, "priority": chosen.value}
        fields |= {"preemptionPolicy": chosen.preemption_policy} if chosen.preemption_policy else {}
    return fields


def _copied(words: Mapping[str, str], keys: Mapping[str, str]) -> dict[str, str]:
    """What is missing is copied as an empty word."""
    return {to: words.get(source, "") for source, to in keys.items()}


def _with(pod: Raw, kind: str, words: Mapping[str, str]) -> Raw:
    if not words:
        return pod
    return {**pod, "metadata": {**_mapping(pod, "metadata"), kind: {**_words(pod, kind), **words}}}


def _words(pod: Raw, kind: str) -> Raw:
    return _mapping(_mapping(pod, "metadata"), kind)


def _mapping(raw: Raw, name: str) -> Raw:
    held = raw.get(name)
    return held if isinstance(held, dict) else {}
