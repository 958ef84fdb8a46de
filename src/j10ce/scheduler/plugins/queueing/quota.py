"""ElasticQuota: what the pods of a namespace are sure of, and what they may borrow of what others leave.

    a pod is tried while    used + asked ≤ most   of its own quota
                       and  Σ used + asked ≤ Σ least  of all quotas: what is lent is somebody's
    it gets its own back    from pods of namespaces that use more than they are sure of, while its own uses less

Only what the quotas name counts. Without a quota a namespace is not held back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Final

from j10ce.model.resource import spell
from j10ce.scheduler.book.around import QuotaFacts
from j10ce.scheduler.book.book import Book, PodListener
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Rows
from j10ce.scheduler.cycle.framework import Candidate, PostFilter, Preemptor, PreFilter, Refused, Skip
from j10ce.scheduler.plugins.queueing.reprieve import Evictees, importance, select

MOST_NODES: Final = 500  # on which something was lent, looked at for one pod


class Usage:
    """By namespace: what its pods have that have a node."""

    def __init__(self) -> None:
        self.used: dict[str, Counter[str]] = {}

    def added(self, pod: PodFacts, row: int, /) -> None:
        self.used.setdefault(pod.namespace, Counter()).update(dict(pod.shape.requests))

    def removed(self, pod: PodFacts, row: int, /) -> None:
        self.used[pod.namespace].subtract(dict(pod.shape.requests))

    def of(self, namespace: str, resource: str) -> int:
        return self.used[namespace][resource] if namespace in self.used else 0


class ElasticQuota:
    name = "ElasticQuota"

    def __init__(self) -> None:
        self._book: Book | None = None
        self._usage = Usage()

    def pre_filter(self, pod: PodFacts, book: Book, /) -> Skip | Refused | None:
        quota = quota_of(pod.namespace, book)
        if quota is None:
            return Skip()
        usage = self._following(book)
        asked = dict(pod.shape.requests)
        for resource, most in quota.most.items():
            used, more = usage.of(pod.namespace, resource), asked.get(resource, 0)
            if more and used + more > most:
                return Refused(
                    f"quota {pod.namespace}/{quota.name} allows {_spelled(resource, most)} of {resource} at most:"
                    f" {_spelled(resource, used)} in use, {_spelled(resource, more)} asked for"
                )
        return self._beyond_all(pod, quota, asked, book)

    def post_filter(self, pod: PodFacts, rows: Rows, cycle: Preemptor, now: float, /) -> Candidate | str:
        """Pods that run on what this namespace is sure of go first; the node is chosen as by DefaultPreemption."""
        book = cycle.book
        quota = quota_of(pod.namespace, book)
        if quota is None or not pod.preempts or not self._owed(pod, quota, book):
            return ""
        best: Evictees | None = None
        for lent, row in islice(self._lenders(rows, book), MOST_NODES):
            victims = select(pod, row, lent, cycle)
            if victims is not None and (best is None or victims.order < best.order):
                best = victims
        if best is None:
            return f"no pod that borrows of quota {pod.namespace}/{quota.name} makes enough room"
        why = f"its namespace borrows what quota {pod.namespace}/{quota.name} is sure of, and {pod.key} needs it"
        return Candidate(book.names[best.row], best.pods, MappingProxyType({p.uid: why for p in best.pods}))

    # -- inside

    def _beyond_all(self, pod: PodFacts, quota: QuotaFacts, asked: Mapping[str, int], book: Book) -> Refused | None:
        usage, every = self._following(book), list(quotas(book))
        for resource in quota.least:
            more = asked.get(resource, 0)
            whole = sum(q.least.get(resource, 0) for q in every)
            used = sum(usage.of(q.namespace, resource) for q in every)
            if more and used + more > whole:
                owed = usage.of(pod.namespace, resource) + more <= quota.least[resource]
                return Refused(
                    f"all quotas together are sure of {_spelled(resource, whole)} of {resource}:"
                    f" {_spelled(resource, used)} in use, {_spelled(resource, more)} asked for",
                    resolvable=owed,
                )
        return None

    def _owed(self, pod: PodFacts, quota: QuotaFacts, book: Book) -> bool:
        """With this pod its namespace uses no more than it is sure of."""
        usage = self._following(book)
        asked = dict(pod.shape.requests)
        return all(usage.of(pod.namespace, r) + asked.get(r, 0) <= least for r, least in quota.least.items())

    def _lenders(self, rows: Rows, book: Book) -> Iterator[tuple[set[str], int]]:
        """Those rows where pods run on what is lent, and which pods those are."""
        borrow = {
            quota.namespace
            for quota in quotas(book)
            if any(self._usage.of(quota.namespace, r) > least for r, least in quota.least.items())
        }
        for row in rows.tolist():
            if any(pod.namespace in borrow for pod in book.there(row)) and (lent := self._lent(row, book)):
                yield lent, row

    def _lent(self, row: int, book: Book) -> set[str]:
        """Uids of pods there that run on what is lent: the least important first, until their namespace uses no more
        than it is sure of."""
        uids, gone = set[str](), dict[str, Counter[str]]()
        for pod in sorted(book.there(row), key=importance, reverse=True):
            quota = quota_of(pod.namespace, book)
            if quota is None or pod.critical:
                continue
            asked, left = dict(pod.shape.requests), gone.setdefault(pod.namespace, Counter())
            if any(
                asked.get(r, 0) and self._usage.of(pod.namespace, r) - left[r] - asked[r] >= least
                for r, least in quota.least.items()
            ):
                left.update(asked)
                uids.add(pod.uid)
        return uids

    def _following(self, book: Book) -> Usage:
        if self._book is not book:
            self._book, self._usage = book, Usage()
            book.listen(self._usage)
        return self._usage


def quota_of(namespace: str, book: Book) -> QuotaFacts | None:
    """The first by name, where there are several."""
    return min(book.around.within(QuotaFacts, namespace), key=lambda q: q.name, default=None)


def quotas(book: Book) -> Iterator[QuotaFacts]:
    """One of each namespace."""
    namespaces = sorted({q.namespace for q in book.around.every(QuotaFacts)})
    return (quota for namespace in namespaces if (quota := quota_of(namespace, book)) is not None)


def _spelled(resource: str, amount: int) -> str:
    return spell(resource, amount) if resource in ("cpu", "memory") else str(amount)


_: tuple[type[PreFilter], type[PostFilter], type[PodListener]] = (ElasticQuota, ElasticQuota, Usage)
