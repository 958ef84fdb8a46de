"""Policies, profiles and reports of nodes, as facts for the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from j10ce.model.kinds import MinimalReservationPolicy, NodeQoS, Object, PolicyRevision, QoSProfile
from j10ce.policy.document.document import reference
from j10ce.scheduler.book.facts import LoadFacts
from j10ce.scheduler.book.pledged import pledge_of
from j10ce.scheduler.book.units import HeldPledge
from j10ce.scheduler.cluster import row
from j10ce.scheduler.cycle.scheduler import Scheduler

KINDS: Final = ("QoSProfile", "PolicyRevision", "MinimalReservationPolicy", "NodeQoS")
LOOK_S: Final = 1.0  # between looks for policies whose time is over


class Promises:
    def __init__(self, scheduler: Scheduler, wall: Callable[[], float]) -> None:
        self._scheduler, self._wall = scheduler, wall
        self._policies: dict[str, MinimalReservationPolicy] = {}  # by reference
        self._revisions: dict[str, dict[str, PolicyRevision]] = {}  # by uid of the policy, and name
        self._held: dict[str, HeldPledge] = {}

    def take(self, obj: Object, *, gone: bool) -> None:
        match obj:
            case QoSProfile():
                (self._scheduler.remove_fact if gone else self._scheduler.put_fact)(obj, self._wall())
            case NodeQoS():
                of = row(obj)
                self._scheduler.put_fact(LoadFacts(of.name, 0.0 if gone else of.load), self._wall())
            case PolicyRevision():
                self._revision(obj, gone=gone)
            case MinimalReservationPolicy() if gone:
                self._policies.pop(reference(obj), None)
                self._judge(reference(obj))
            case MinimalReservationPolicy():
                self._policies[reference(obj)] = obj
                self._judge(reference(obj))
            case _:
                raise TypeError(f"{obj.kind} is no promise")

    def expire(self) -> None:
        """Those whose time is over hold nothing."""
        now = self._wall()
        for source in [source for source, pledge in self._held.items() if pledge.until <= now]:
            self._judge(source)

    def _revision(self, revision: PolicyRevision, *, gone: bool) -> None:
        for owner in revision.metadata.owner_references:
            kept = self._revisions.setdefault(owner.uid, {})
            if gone:
                kept.pop(revision.metadata.name, None)
            else:
                kept[revision.metadata.name] = revision
            if not kept:
                del self._revisions[owner.uid]
            for source in [s for s, p in self._policies.items() if p.metadata.uid == owner.uid]:
                self._judge(source)

    def _judge(self, source: str) -> None:
        policy, now = self._policies.get(source), self._wall()
        revisions = self._revisions.get(policy.metadata.uid, {}).values() if policy else ()
        pledge = pledge_of(policy, revisions, now) if policy else None
        before = self._held.pop(source, None)
        if pledge is not None:
            self._held[source] = pledge
            if pledge != before:
                self._scheduler.put_fact(pledge, now)
        elif before is not None:
            self._scheduler.remove_fact(before, now)
