"""The objects at the top of pods' owners: a Deployment above its ReplicaSet, and the Job of a CronJob itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from j10ce.model.kube.native import NativeOwner
from j10ce.model.kube.surroundings import PodOwner
from j10ce.scheduler.book.facts import OwnerFacts
from j10ce.scheduler.book.shape import LabelTest
from j10ce.scheduler.reading.terms import label_test

BETWEEN: Final = "ReplicaSet"  # stands between a pod and its Deployment
HASH: Final = "pod-template-hash"  # label of the pods of a Deployment, and the end of its ReplicaSet's name
SLO: Final = "slo"


class OwnerName(NamedTuple):
    kind: str
    namespace: str
    name: str


class Owners:
    """Kept by events. A pod that comes before its owners is read with what their names say."""

    def __init__(self) -> None:
        self._facts: dict[OwnerName, OwnerFacts] = {}
        self._above: dict[OwnerName, OwnerName] = {}
        self._selectors: dict[OwnerName, LabelTest | None] = {}

    def put(self, kind: str, owner: PodOwner) -> OwnerFacts:
        meta = owner.metadata
        name = OwnerName(kind, meta.namespace, meta.name)
        selector = label_test(owner.spec.selector)
        above = controlling(meta.owner_references)
        if kind == BETWEEN and above is not None:
            self._above[name] = OwnerName(above.kind, meta.namespace, above.name)
        else:
            self._above.pop(name, None)
        self._selectors[name] = selector
        slo, completions = meta.annotations.get(SLO, ""), max(0, owner.spec.completions)
        facts = self._facts[name] = OwnerFacts(*name, _slots(kind, owner), slo, completions, selector)
        return facts

    def remove(self, kind: str, namespace: str, name: str) -> OwnerFacts | None:
        """What was known of it."""
        gone = OwnerName(kind, namespace, name)
        self._above.pop(gone, None)
        self._selectors.pop(gone, None)
        return self._facts.pop(gone, None)

    def top(self, namespace: str, references: Iterable[NativeOwner], labels: Mapping[str, str]) -> OwnerFacts | None:
        """`selector`, unlike the rest, is that of the direct owner."""
        direct = controlling(references)
        if direct is None:
            return None
        name = OwnerName(direct.kind, namespace, direct.name)
        top = self._above.get(name) or self._foretold(name, labels)
        facts = self._facts.get(top) or OwnerFacts(*top)
        selector = self._selectors.get(name)
        return facts if facts.selector == selector else facts._replace(selector=selector)

    def _foretold(self, name: OwnerName, labels: Mapping[str, str]) -> OwnerName:
        """Kinds are watched apart, so that a pod may come before its ReplicaSet: whose pod it is does not wait for
        that, as an account is for as long as the pod is there."""
        deployment = name.name.removesuffix(f"-{labels.get(HASH, '')}")
        if name.kind != BETWEEN or name in self._selectors or not labels.get(HASH) or deployment in ("", name.name):
            return name
        return OwnerName("Deployment", name.namespace, deployment)


def controlling(references: Iterable[NativeOwner]) -> NativeOwner | None:
    return next((reference for reference in references if reference.controller), None)


def _slots(kind: str, owner: PodOwner) -> int:
    """Pods that are to run at a time."""
    match kind:
        case "Job":
            return max(0, owner.spec.parallelism)
        case "DaemonSet":
            return max(0, owner.status.desired_number_scheduled)
        case _:
            return max(0, owner.spec.replicas)
