"""Cases about pods: classes, priorities, and the webhooks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.classes import class_or_default
from j10ce.dialects.koordinator.webhook.mutate import PriorityClass, mutate
from j10ce.dialects.koordinator.webhook.pods import PodFacts, facts
from j10ce.dialects.koordinator.webhook.profile import read_profile
from j10ce.dialects.koordinator.webhook.required import NONE_REQUIRED, RequiredLabels
from j10ce.dialects.koordinator.webhook.validate import PodRefusal, RefusalKind, validate
from j10ce.errors import Invalid
from j10ce.model.quantity import Quantity
from j10ce.model.schema import convert
from tests.koordinator.theirs.defaults import priority_or_default

Case = dict[str, Any]
SPEC = ("priority", "schedulerName", "priorityClassName", "preemptionPolicy", "overhead")
CONTAINERS = ("initContainers", "containers")
KINDS: tuple[str, ...] = get_args(RefusalKind)
KEEP_RESOURCES = "ColocationProfileSkipMutatingResources"


def kube_pod(raw: Case) -> Case:
    """A pod of Kubernetes of the short form that cases use."""
    meta = {name: raw[name] for name in ("name", "namespace", "labels", "annotations") if name in raw}
    spec = {name: raw[name] for name in SPEC if name in raw}
    for kind in CONTAINERS:
        spec[kind] = [
            {
                "name": container.get("name", f"c{n}"),
                "resources": {side: container[side] for side in ("requests", "limits") if side in container},
            }
            for n, container in enumerate(raw.get(kind) or ())
        ]
    return {"metadata": meta, "spec": spec}


def known(case: Case) -> PodFacts | None:
    """None: there is no pod."""
    return None if case.get("pod") is None else facts(kube_pod(case["pod"]))


def of_pod(said: Callable[[PodFacts], str]) -> Callable[[Case], str]:
    """Of no pod it is an empty word."""
    return lambda case: "" if (pod := known(case)) is None else said(pod)


def priority_value(case: Case) -> Any:
    pod = known(case)
    return 0 if pod is None else priority_or_default(pod.labels, case["pod"].get("priority"), pod.native)


def validate_pod(case: Case) -> Any:
    update = case["operation"] == "UPDATE"
    old = kube_pod(case["old_pod"]) if update and case.get("old_pod") is not None else None
    gates = [name for name, on in (case.get("feature_gates") or {}).items() if on]
    rules = convert(case["enhanced_config"], RequiredLabels) if case.get("enhanced_config") else NONE_REQUIRED
    namespace = case["pod"].get("namespace", "default")
    refused = validate(kube_pod(case["pod"]), old, gates=gates, namespace=namespace, required=rules, literal=True)
    return Admission(tuple(refused))


class Admission(NamedTuple):
    """Says what a case expects: whether the pod is allowed; and where the case says why, the same kinds of reasons."""

    refused: tuple[PodRefusal, ...]

    def says(self, expected: Any) -> bool:
        kinds = {refusal.kind for refusal in self.refused}
        said = expected.get("reason") or ""
        named = {kind for kind in KINDS if f"{kind} value" in said or (kind == "Forbidden" and kind in said)}
        return (
            expected["allowed"] == (not self.refused)
            and expected.get("kind", next(iter(kinds), None)) in (kinds or {None})
            and (not named or named == kinds)
        )


def mutate_pod(case: Case) -> Any:
    listed = case["profiles"] if "profiles" in case else [case["profile"]] if case.get("profile") else []
    profiles = [profile for raw in listed if (profile := read(raw, case)) is not None]
    classes = {
        name: PriorityClass(said["value"], said.get("preemptionPolicy", ""))
        for name, said in (case.get("priority_classes") or {}).items()
    }
    pod = kube_pod(case["pod"])
    keep = bool((case.get("feature_gates") or {}).get(KEEP_RESOURCES))
    done = mutate(
        pod, case["pod"].get("namespace_labels", {}), profiles, classes, lambda _: case.get("random_draw", 0),
        keep_resources=keep, literal=True,
    )  # fmt: skip
    if done.refused is not None:
        raise Invalid([done.refused])
    return MutatedPod(short(done.pod))


def read(raw: Case, case: Case) -> Any:
    spec = {name: value for name, value in raw.items() if name not in ("name", "metadata", "skip_update_resources")}
    own = (raw.get("metadata") or {}).get("annotations") or case.get("profile_annotations") or {}
    keeps = names.SKIP_UPDATE_RESOURCES in own or bool(raw.get("skip_update_resources"))
    keeps = keeps or names.SKIP_UPDATE_RESOURCES in (spec.get("annotations") or {})
    return read_profile(raw.get("name", "profile"), spec, keeps_resources=keeps)[0]


def short(pod: Case) -> Case:
    meta, spec = pod["metadata"], pod["spec"]
    out: Case = {"labels": meta.get("labels", {}), "annotations": dict(meta.get("annotations", {}))}
    out |= {name: spec.get(name, "") for name in SPEC}
    for kind in CONTAINERS:
        out[kind] = [{"name": c["name"], **c["resources"]} for c in spec.get(kind, ())]
    return out


class MutatedPod(NamedTuple):
    """Says what a case expects if all that the case names is so, amounts by their value.

    The annotation that repeats amounts counts only where a case names it.
    """

    pod: Case

    def says(self, expected: Any) -> bool:
        return isinstance(expected, dict) and all(self._says(name, value) for name, value in expected.items())

    def _says(self, name: str, value: Any) -> bool:
        own = self.pod.get(name, {})
        if name == "annotations" and names.EXTENDED_RESOURCES not in value:
            own = {key: text for key, text in own.items() if key != names.EXTENDED_RESOURCES}
        if name == "annotations":
            own, value = (parsed(annotations) for annotations in (own, value))
        return bool(amounts(own, name) == amounts(value, name))


def parsed(annotations: Case) -> Case:
    """With the amounts that repeat those of containers as what they say, in whatever spelling."""
    text = annotations.get(names.EXTENDED_RESOURCES)
    return annotations if text is None else {**annotations, names.EXTENDED_RESOURCES: json.loads(text)}


def amounts(value: Any, within: str = "") -> Any:
    """With quantities as numbers."""
    if isinstance(value, dict):
        quantities = within in ("requests", "limits", "overhead")
        return {key: Quantity.parse(item) if quantities else amounts(item, key) for key, item in value.items()}
    return [amounts(item) for item in value] if isinstance(value, list) else value


OPS = {
    "qos_class_raw": of_pod(lambda pod: pod.koord.value),
    "qos_class_with_default": of_pod(lambda pod: class_or_default(pod.labels, pod.native).value),
    "priority_class_raw": of_pod(lambda pod: pod.band.value),
    "priority_class_with_default": of_pod(lambda pod: pod.resulting.value),
    "priority_value_with_default": priority_value,
    "validate_pod": validate_pod,
    "mutate_pod": mutate_pod,
}
