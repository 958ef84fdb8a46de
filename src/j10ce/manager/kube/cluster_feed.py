"""Pods, nodes and policies of a Kubernetes cluster, followed into the book that the Scheduler Extender reads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from j10ce.adapters.kubernetes_workload import member
from j10ce.manager.documents.documents import Nodes
from j10ce.manager.documents.view import Signal, View
from j10ce.model.kinds import (
    PROFILE_LABEL,
    MinimalReservationPolicy,
    NodeQoS,
    QoSProfile,
    Tier,
)
from j10ce.model.kube.native import Node
from j10ce.model.kube.pod import Pod, requests
from j10ce.model.resource import NOTHING, Resources
from j10ce.model.stored import Event, Key
from j10ce.model.workload import Workload
from j10ce.policy.choose import Choice, Chooser
from j10ce.policy.document.document import reference
from j10ce.policy.select import Labels
from j10ce.scheduler.book.pledged import pledge_of
from j10ce.scheduler.book.units import Guest
from j10ce.scheduler.cluster import resources, row
from j10ce.scheduler.extender.occupancy import Occupancy
from j10ce.scheduler.extender.offers import Offers
from j10ce.scheduler.ledger.layout import MOST
from j10ce.store.mirror import Mirror, MirrorSource

LOOK_S: Final = 1.0  # between looks for policies whose time is over
SETTLE_S: Final = 0.2  # profiles and namespaces that change together are taken in together
MOST_NAMED: Final = 1000
TOGETHER: Final = 500  # pods looked at before others have a turn


def as_it_is(w: Workload) -> Workload:
    return w


class Occupants:
    """`view` tells of our kinds, `source` of Kubernetes' own; what they say goes into `book`, and ends `offers`.
    `translate` understands which profile a pod asks for in other words than ours."""

    def __init__(
        self,
        source: MirrorSource,
        view: View,
        wall: Callable[[], float],
        book: Occupancy,
        offers: Offers,
        translate: Callable[[Workload], Workload] = as_it_is,
    ) -> None:
        self._translate = translate
        self._view, self._wall, self._book, self._offers = view, wall, book, offers
        self._pods, self._nodes, self._namespaces = (Mirror(source, kind) for kind in ("Pod", "Node", "Namespace"))
        self._chooser = Chooser(())
        self._doubtful = asyncio.Event()  # who gives way
        self.synced = [each.synced for each in (self._pods, self._nodes, self._namespaces)]
        self.heard = Signal()  # moves with every pod that comes, changes or goes
        self.named: deque[Pod] = deque(maxlen=MOST_NAMED)  # pods that came with the name of a profile; for who looks

    @property
    def complete(self) -> bool:
        return self._view.complete and all(event.is_set() for event in self.synced)

    async def ready(self) -> None:
        for event in self.synced:
            await event.wait()

    def nodes(self) -> list[Node]:
        held: Mapping[Key, object] = self._nodes.held
        return [node for node in held.values() if isinstance(node, Node)]

    async def run(self) -> None:
        with self._view.heard(self._take):
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow_pods())
                group.create_task(self._follow_nodes())
                group.create_task(self._follow_namespaces())
                group.create_task(self._reconsider())
                group.create_task(self._expire())

    def guest(self, pod: Pod) -> Guest:
        """The pod as it counts."""
        meta, created = pod.metadata, pod.metadata.creation_timestamp
        request, known = resources(requests(pod)), self._member(pod)
        choice = self._chooser.choose(known)
        return Guest(
            meta.uid,
            meta.namespace,
            meta.name,
            known.labels,
            Resources._make(min(n, MOST) for n in request),
            pod.spec.node_name,
            created.timestamp() if created else 0.0,
            _gives_way(choice),
            choice.ignored,
        )

    def asked(self, pod: Pod) -> Guest:
        """The pod that a scheduler asks about, as the API server sent it to us. One that we have not heard of, or that
        waits for no node, counts as it is described, and has no uid: nothing is ever held for it."""
        meta = pod.metadata
        known = self.pod(meta.namespace, meta.name)
        if known is None or known.metadata.uid != meta.uid or known.ended or known.spec.node_name:
            return self.guest(pod)._replace(uid="")
        return self.guest(known)

    def known_namespace(self, name: str) -> Labels | None:
        """Its labels."""
        namespace = self._namespaces.held.get(Key("Namespace", "", name))
        return namespace.metadata.labels if namespace else None

    def pod(self, namespace: str, name: str) -> Pod | None:
        pods: Mapping[Key, object] = self._pods.held
        held = pods.get(Key("Pod", namespace, name))
        return held if isinstance(held, Pod) else None

    def choice(self, pod: Pod) -> Choice:
        """Which profile it has, by what is in memory."""
        return self._chooser.choose(self._member(pod))

    def _member(self, pod: Pod) -> Workload:
        return self._translate(member(pod, self.known_namespace(pod.metadata.namespace) or {}))

    # -- Kubernetes' own kinds

    async def _follow_pods(self) -> None:
        async for event in self._pods.changes():
            pod: object = event.object
            if isinstance(pod, Pod):
                self._take_pod(pod, gone=event.type == "DELETED")
                if event.type == "ADDED" and self._pods.synced.is_set() and PROFILE_LABEL in pod.metadata.labels:
                    self.named.append(pod)
                self._view.objects.move()

    def _take_pod(self, pod: Pod, *, gone: bool) -> None:
        uid = pod.metadata.uid
        if gone or pod.ended or pod.spec.node_name:
            self._offers.end(uid)
        if gone or pod.ended:
            self._book.remove_guest(uid)
        elif pod.spec.node_name:
            self._book.put_guest(self.guest(pod))
        self.heard.move()

    async def _follow_nodes(self) -> None:
        async for event in self._nodes.changes():
            node: object = event.object
            if isinstance(node, Node):
                there = NOTHING if event.type == "DELETED" else resources(node.status.allocatable)
                self._book.put_node(node.metadata.name, there)
                self._view.objects.move()

    async def _follow_namespaces(self) -> None:
        async for event in self._namespaces.changes():
            if event.old is None or event.old.metadata.labels != event.object.metadata.labels:
                self._doubtful.set()

    async def _reconsider(self) -> None:
        """Profiles and labels of namespaces say who gives way and whom no policy counts for; all pods are looked at
        again when one of them changes."""
        while True:
            await self._doubtful.wait()
            await asyncio.sleep(SETTLE_S)
            self._doubtful.clear()
            self._chooser = Chooser(self._view.all(QoSProfile))
            book = self._book
            for n, guest in enumerate(list(book.guests.values())):
                there, pod = book.guests.get(guest.uid), self.pod(guest.namespace, guest.name)
                if there is not None and pod is not None:
                    choice = self.choice(pod)
                    book.put_guest(there._replace(gives_way=_gives_way(choice), ignored=choice.ignored))
                if n % TOGETHER == 0:
                    await asyncio.sleep(0)

    # -- ours

    def _take(self, event: Event, _: Nodes) -> None:
        obj, book, gone = event.object, self._book, event.type == "DELETED"
        if isinstance(obj, QoSProfile):
            self._doubtful.set()
        elif isinstance(obj, NodeQoS):
            known = row(obj)
            book.put_report(known.name, 0.0 if gone else known.load, NOTHING if gone else known.capacity)
        elif isinstance(obj, MinimalReservationPolicy):
            pledge = None if gone else pledge_of(obj, self._view.documents.revisions(obj), self._wall())
            book.remove_pledge(reference(obj)) if pledge is None else book.put_pledge(pledge)

    async def _expire(self) -> None:
        book = self._book
        while True:
            await asyncio.sleep(LOOK_S)
            now = self._wall()
            for source in [source for source, pledge in book.units.pledges.items() if pledge.until <= now]:
                book.remove_pledge(source)


def _gives_way(choice: Choice) -> bool:
    return choice.profile is not None and choice.tier is Tier.BESTEFFORT
