"""What a pod may ask of us, and which profile it is given when it asks for none. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from msgspec.structs import replace

from j10ce.errors import Finding
from j10ce.model.kinds import GROUP, IGNORE_LABEL, PROFILE_LABEL, WORKLOAD_LABEL, QoSProfile
from j10ce.model.workload import Workload
from j10ce.policy.choose import Chooser, ignored
from j10ce.policy.profiles import canonical, may_choose
from j10ce.policy.select import Labels
from j10ce.policy.validation import syntax

OURS: Final = f"{GROUP}/"


def ours(labels: Labels) -> Labels:
    """The labels that concern us."""
    return {key: value for key, value in labels.items() if key.startswith(OURS)}


def pod_findings(pod: Workload, profiles: Collection[QoSProfile]) -> list[Finding]:
    """All that is wrong with the labels of a pod."""
    return [] if ignored(pod) else [*_labels(pod.labels), *_profile(pod, profiles)]


def profile_for(pod: Workload, profiles: Collection[QoSProfile]) -> str:
    """The profile that a pod is labelled with when it names none; empty: it is left as it is.

    That is the one of its namespace, where no profile's selector chooses it: a label would freeze what a selector may
    choose otherwise tomorrow.
    """
    wanted = canonical(pod.namespace_labels.get(PROFILE_LABEL, ""))
    if not wanted or pod.labels.get(PROFILE_LABEL) or ignored(pod):
        return ""
    alone = replace(pod, namespace_labels={k: v for k, v in pod.namespace_labels.items() if k != PROFILE_LABEL})
    by_namespace = Chooser(profiles).choose(alone).profile is None
    named = next((p for p in profiles if p.metadata.name == wanted), None)
    return wanted if by_namespace and named is not None and may_choose(named, pod.namespace_labels) else ""


def _labels(labels: Labels) -> Iterator[Finding]:
    for key, value in ours(labels).items():
        if key != WORKLOAD_LABEL:  # its own name, which may be longer than the value of a label
            yield from syntax.label_value(f"metadata.labels.{key}", value)
    ignore = labels.get(IGNORE_LABEL, "true")
    if ignore not in ("true", "false"):
        yield Finding(f"metadata.labels.{IGNORE_LABEL}", ignore, "not a truth value", 'use "true" or "false"')


def _profile(pod: Workload, profiles: Collection[QoSProfile]) -> Iterator[Finding]:
    asked = pod.labels.get(PROFILE_LABEL)
    if asked is None:
        return
    path, name = f"metadata.labels.{PROFILE_LABEL}", canonical(asked)
    named = next((p for p in profiles if p.metadata.name == name), None)
    allowed = sorted(p.metadata.name for p in profiles if may_choose(p, pod.namespace_labels))
    if named is None:
        yield Finding(path, asked, "no QoSProfile has this name", f"use one of {', '.join(allowed)}")
    elif name not in allowed:
        yield Finding(path, asked, f"namespace {pod.namespace} may not choose it", f"use one of {', '.join(allowed)}")
