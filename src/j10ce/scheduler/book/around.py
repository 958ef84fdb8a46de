"""What else a cluster holds that decides where pods run, and who may be evicted: facts of objects that are no pods."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, get_args

from j10ce.scheduler.book.facts import OwnerFacts, PodFacts
from j10ce.scheduler.book.selecting import chosen
from j10ce.scheduler.book.shape import LabelTest, NodeTerm


class NamespaceFacts(NamedTuple):
    name: str
    labels: Mapping[str, str]


class BudgetFacts(NamedTuple):
    """A PodDisruptionBudget. `disrupted`: names of pods that it counts as gone already."""

    namespace: str
    name: str
    selector: LabelTest | None
    allowed: int
    disrupted: frozenset[str] = frozenset()


class ClaimFacts(NamedTuple):
    """A PersistentVolumeClaim. `volume`: what it is bound to; empty: it awaits its first consumer, or a volume."""

    namespace: str
    name: str
    volume: str = ""


class VolumeFacts(NamedTuple):
    """A PersistentVolume. `nodes` None: it can be used everywhere."""

    name: str
    nodes: tuple[NodeTerm, ...] | None = None


class GroupFacts(NamedTuple):
    """A PodGroup: its pods start together, `least` at a time. `wait_s` 0: as the profile says."""

    namespace: str
    name: str
    least: int
    wait_s: float = 0.0


class QuotaFacts(NamedTuple):
    """An ElasticQuota of a namespace: what it is sure of and what it can borrow up to, in millicores or whole units."""

    namespace: str
    name: str
    least: Mapping[str, int]
    most: Mapping[str, int]


class ServiceFacts(NamedTuple):
    """A Service of Kubernetes, whose pods are spread when they do not say how."""

    namespace: str
    name: str
    selector: LabelTest | None


Fact: TypeAlias = (
    OwnerFacts | NamespaceFacts | BudgetFacts | ClaimFacts | VolumeFacts | GroupFacts | QuotaFacts | ServiceFacts
)
FACTS: Final = get_args(Fact)
F = TypeVar("F", bound=Fact)
NO_LABELS: Final = MappingProxyType[str, str]({})


class Around:
    """`version` moves with every change: whoever caches remembers which one it has seen."""

    def __init__(self) -> None:
        self.version = 0
        self._held: dict[type[Any], dict[str, dict[str, Any]]] = {}  # by kind, namespace and name

    def put(self, fact: Fact) -> None:
        namespace, name = _place(fact)
        there = self._held.setdefault(type(fact), {}).setdefault(namespace, {})
        if there.get(name) != fact:
            there[name] = fact
            self.version += 1

    def remove(self, fact: Fact) -> None:
        namespace, name = _place(fact)
        there = self._held.get(type(fact), {}).get(namespace, {})
        if there.pop(name, None) is not None:
            self.version += 1

    def every(self, kind: type[F]) -> Iterator[F]:
        for there in self._held.get(kind, {}).values():
            yield from there.values()

    def within(self, kind: type[F], namespace: str) -> Collection[F]:
        there: dict[str, F] = self._held.get(kind, {}).get(namespace, {})
        return there.values()

    def one(self, kind: type[F], namespace: str, name: str) -> F | None:
        """What belongs to the cluster as a whole has the namespace ""."""
        known: F | None = self._held.get(kind, {}).get(namespace, {}).get(name)
        return known

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        known = self.one(NamespaceFacts, "", namespace)
        return known.labels if known else NO_LABELS

    def budgets_of(self, pod: PodFacts) -> Iterator[BudgetFacts]:
        """Those that count the pod; one without a selector counts nobody."""
        for budget in self.within(BudgetFacts, pod.namespace):
            if chosen(budget.selector, pod.labels):
                yield budget


def _place(fact: Fact) -> tuple[str, str]:
    return ("" if isinstance(fact, NamespaceFacts | VolumeFacts) else fact.namespace), fact.name
