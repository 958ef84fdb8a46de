"""Coscheduling: the pods of a group start together, or not at all.

A group is named by a label of its pods; how many have to start together is said by its PodGroup, or by an annotation of
the pods. Pods are tried once so many of them exist; those that have a node wait for the others, and give it back when
that takes too long.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from j10ce.scheduler.book.around import GroupFacts
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.selecting import whole
from j10ce.scheduler.cycle.framework import (
    Await,
    FactWatcher,
    Gathers,
    Permit,
    PodWatcher,
    PreFilter,
    Refused,
    Reserve,
    Side,
    Skip,
)

LABELS: Final = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
LEAST: Final = "scheduling.x-k8s.io/min-member"  # annotation, where there is no PodGroup
WAIT_S: Final = 60.0


class GroupName(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Coscheduling:
    """`wait_s`: how long a pod with a node waits for the others, where its group does not say."""

    name = "Coscheduling"
    facts: tuple[type, ...] = (GroupFacts,)

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._objects: dict[GroupName, GroupFacts] = {}
        self._of: dict[str, GroupName] = {}  # by uid: labels of a pod may name another group later
        self._there: defaultdict[GroupName, set[str]] = defaultdict(set)  # uids of all pods that have not ended
        self._placed: defaultdict[GroupName, set[str]] = defaultdict(set)  # of those with a node, or about to have one
        self._waiting: defaultdict[GroupName, set[str]] = defaultdict(set)
        self._since: dict[GroupName, float] = {}  # when the first of those that are there was made
        self._ready: list[str] = []

    # -- who there is

    def pod_seen(self, pod: PodFacts, now: float, /) -> None:
        group = group_of(pod)
        if group is None or group != self._of.get(pod.uid) or pod.ended or pod.deleted is not None:
            self.pod_gone(pod, now)
        if group is None or pod.ended or pod.deleted is not None:
            return
        self._of[pod.uid] = group
        self._since[group] = min(pod.created, self._since.get(group, pod.created))
        self._there[group].add(pod.uid)
        if pod.node:
            self._placed[group].add(pod.uid)

    def pod_gone(self, pod: PodFacts, now: float, /) -> None:
        group = self._of.pop(pod.uid, None)
        if group is not None:
            for table in (self._there, self._placed, self._waiting):
                table[group].discard(pod.uid)
                if not table[group]:
                    del table[group]
            if group not in self._there:
                self._since.pop(group, None)

    def fact_seen(self, fact: GroupFacts, now: float, /) -> None:
        self._objects[GroupName(fact.namespace, fact.name)] = fact

    def fact_gone(self, fact: GroupFacts, now: float, /) -> None:
        self._objects.pop(GroupName(fact.namespace, fact.name), None)

    # -- who is tried

    def side(self, pod: PodFacts, /) -> Side | None:
        """The pods of a group stand together: two groups that took turns held half of the room each, for ever."""
        group = group_of(pod)
        return Side(self._since.get(group, pod.created), str(group)) if group is not None else None

    def pre_filter(self, pod: PodFacts, book: Book, /) -> Skip | Refused | None:
        group = group_of(pod)
        if group is None:
            return Skip()
        there, least = len(self._there.get(group, ())), self._least(pod, group)
        if there >= least:
            return None
        return Refused(f"group {group} has {there} of the {least} pods that have to start together")

    # -- who waits

    def reserve(self, pod: PodFacts, node: str, now: float, /) -> None:
        if (group := group_of(pod)) is not None:
            self._placed[group].add(pod.uid)

    def unreserve(self, pod: PodFacts, node: str, now: float, /) -> None:
        if (group := group_of(pod)) is not None:
            self._placed[group].discard(pod.uid)
            self._waiting[group].discard(pod.uid)

    def permit(self, pod: PodFacts, node: str, now: float, /) -> Await | None:
        group = group_of(pod)
        if group is None:
            return None
        placed, least = len(self._placed[group] | {pod.uid}), self._least(pod, group)
        if placed >= least:
            self._ready += self._waiting.pop(group, ())
            return None
        self._waiting[group].add(pod.uid)
        known = self._objects.get(group)
        wait_s = known.wait_s if known is not None and known.wait_s > 0 else self._wait_s
        return Await(now + wait_s, f"{placed} of the {least} pods of group {group} have a node")

    def permitted(self) -> Sequence[str]:
        ready, self._ready = self._ready, []
        return ready

    def _least(self, pod: PodFacts, group: GroupName) -> int:
        known = self._objects.get(group)
        return known.least if known is not None else max(1, whole(pod.annotations.get(LEAST)) or 1)


def group_of(pod: PodFacts) -> GroupName | None:
    name = next((value for label in LABELS if (value := pod.labels.get(label))), "")
    return GroupName(pod.namespace, name) if name else None


def _conforms(plugin: Coscheduling) -> tuple[PodWatcher, FactWatcher, Gathers, PreFilter, Reserve, Permit]:
    return plugin, plugin, plugin, plugin, plugin, plugin
