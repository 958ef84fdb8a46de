"""What a scheduler knows of a pod and of a node: read once from their objects, and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from j10ce.scheduler.book.shape import Effect, LabelTest, Pairs, Shape

Phase: TypeAlias = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
NO_SHAPE: Final = Shape()


class NodeTaint(NamedTuple):
    key: str
    value: str
    effect: Effect


class NodeFacts(NamedTuple):
    """`allocatable` in millicores, else in whole units; `images` by name: bytes."""

    name: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    taints: tuple[NodeTaint, ...] = ()
    unschedulable: bool = False
    images: Mapping[str, int] = {}


class LoadFacts(NamedTuple):
    """What the agent of a node expects: the dominant share of the peak, 0 to 1."""

    node: str
    load: float


class OwnerFacts(NamedTuple):
    """The object at the top of a pod's owners: its Deployment, not its ReplicaSet; its CronJob's Job."""

    kind: str
    namespace: str
    name: str
    slots: int = 1  # pods that are to run at a time: replicas or parallelism
    slo: str = ""  # its annotation, as written
    completions: int = 0
    selector: LabelTest | None = None  # of the pods of its direct owner: what defaults of spreading count


class PodFacts(NamedTuple):
    """`node`: where it is bound, or assumed to be. Times are seconds since 1970."""

    uid: str
    namespace: str
    name: str
    shape: Shape = NO_SHAPE
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    scheduler: str = ""
    priority: int = 0
    preempts: bool = True  # preemptionPolicy is not Never
    created: float = 0.0
    node: str = ""
    nominated: str = ""
    phase: Phase = "Pending"
    started: float | None = None  # of its containers that run: the first
    deleted: float | None = None  # when it was asked to end
    gates: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()  # names of PersistentVolumeClaims
    unjudged: tuple[str, ...] = ()  # what it asks for that this scheduler cannot judge, such as resource claims
    owner: OwnerFacts | None = None
    critical: bool = False  # a mirror pod, or of a system priority class

    def at(self, node: str) -> PodFacts:
        """As `_replace(node=node)`, which takes four times as long."""
        return PodFacts._make((*self[:NODE], node, *self[NODE + 1 :]))

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


NODE: Final = PodFacts._fields.index("node")


def pairs(mapping: Mapping[str, str]) -> Pairs:
    return tuple(sorted(mapping.items()))
