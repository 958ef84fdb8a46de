"""`place`: choose a node for a workload, and hold its floor there until it comes.

What is held is an object like any other: a MinimalReservationPolicy of one unit, for that workload, on that node, with
a ttl. The leader alone admits it, so two managers that choose the last room at the same time cannot both have it: one
of them is refused, takes its policy back and tries the next node. A workload for which a policy holds a unit takes that
unit; its placement then holds nothing, and only tells others that the unit is spoken for.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import structlog
from msgspec import UNSET
from msgspec.structs import replace
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from j10ce.errors import Conflict, NotFound, Unreachable
from j10ce.manager.access.roles import PLACEMENT, admit, enter
from j10ce.manager.api.place_policy import (
    Terms,
    answer,
    check,
    expires,
    floor_on,
    is_placement,
    placement_name,
    policy_for,
    read_terms,
)
from j10ce.manager.api.place_policy import verdict as leaders_word
from j10ce.manager.asgi.beside import beside
from j10ce.manager.asgi.requests import BASE, JSON_TYPES, is_dry, json, not_allowed, read_body
from j10ce.manager.documents.silence import Word
from j10ce.manager.documents.view import View
from j10ce.model.kinds import MinimalReservationPolicy, NodeQoS, PolicyRevision, QoSProfile, Workload
from j10ce.model.placement import Placement
from j10ce.model.quantity import Duration
from j10ce.model.schema import encode, parse_once
from j10ce.model.stored import key_of
from j10ce.policy.document.document import reference
from j10ce.policy.lifetime import in_force, over
from j10ce.policy.validation.reported import report_findings
from j10ce.scheduler.cluster import STANDS_ON, Cluster, Row, assemble, node_of, row
from j10ce.scheduler.place.demand import Request, request
from j10ce.scheduler.place.place import PlaceDecision, place
from j10ce.store.store import ABSENT, Store

log = structlog.get_logger()
KIND: Final = "MinimalReservationPolicy"
DECIDE_S: Final = 15.0  # within which a leader says yes or no
MOST_TRIES: Final = 8
PAUSE_S: Final = 0.05  # at most, before a unit that several wanted at once is tried for again
METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]


class Taken(Exception):
    """Someone else was faster, or the leader refused; the message says why."""


class Raced(Taken):
    """Several wanted the same unit at once, and all who saw it let go: the same node may be tried again."""


class Exists(Exception):
    """The workload is being placed by someone else right now."""


class PlaceInputs(NamedTuple):
    """What a decision is made from, as of one instant."""

    nodes: Sequence[tuple[NodeQoS, Word]]
    policies: Sequence[tuple[MinimalReservationPolicy, tuple[PolicyRevision, ...]]]  # with their history
    wall: float


class Placements:
    def __init__(
        self,
        store: Store,
        view: View,
        wall: Callable[[], float],
        decide_s: float = DECIDE_S,
        audited: Store | None = None,
    ) -> None:
        """`audited` is the store for what somebody made before: the audit log hears of what becomes of it."""
        self._store, self._view, self._wall, self._decide_s = store, view, wall, decide_s
        self._audited = audited or store
        self._rows: dict[str, tuple[str, Row]] = {}  # by node: as of which revision

    def routes(self) -> list[Route]:
        paths = (f"{BASE}/placements", f"{BASE}/namespaces/{{namespace}}/placements")
        return [Route(path, self.handle, methods=METHODS) for path in paths]

    async def handle(self, http: HttpRequest) -> Response:
        """POST a Workload. `dryRun=All` asks what would be; `for=10m` how long to hold; `unenforced=allow`."""
        if http.method != "POST":
            raise not_allowed(http, ("POST",))
        dry, namespace = is_dry(http), http.path_params.get("namespace", "")
        self.enter(namespace, dry=dry)
        terms = read_terms(http.query_params, dry=dry)
        workload = parse_once(await read_body(http, JSON_TYPES), Workload)
        if namespace:
            workload = replace(workload, metadata=replace(workload.metadata, namespace=namespace))
        return json(encode(await self.place(workload, terms)), 200 if dry else 201)

    def enter(self, namespace: str, *, dry: bool) -> None:
        """Raises Denied for a caller that may not ask, or may only ask what would be."""
        enter("get" if dry else "create", PLACEMENT, namespace)

    async def place(self, workload: Workload, terms: Terms) -> Placement:
        """A node and its reservation; Conflict with the numbers when there is none.

        A workload that is placed already keeps its node: asking again is safe.
        """
        check(workload)
        await self._view.ready()
        profiles = tuple(self._view.all(QoSProfile))
        wanted = await beside(partial(request, workload, profiles, unenforced=terms.unenforced))
        if terms.dry:
            decision = await self._decide(wanted)
            return answer(decision, decision.ranking[:1], dry=True)
        for _ in range(MOST_TRIES):
            if (known := await self._known(wanted)) is not None:
                return known
            try:
                return await self._reserve(wanted, terms.ttl)
            except Exists:
                continue
        raise Conflict(f"{wanted.name} is being placed by others; ask again")

    async def _decide(self, wanted: Request) -> PlaceDecision:
        """What would be chosen at this instant. With thousands of policies that takes long: only what it is decided
        from is gathered on the event loop."""
        seen = self._seen(self._view.nodes(), self._view.all(MinimalReservationPolicy))
        return await beside(lambda: place(wanted, self._cluster_of(seen)))

    def cluster(self) -> Cluster:
        return self._cluster_of(self._seen(self._view.nodes(), self._view.all(MinimalReservationPolicy)))

    def _seen(self, nodes: Iterable[NodeQoS], policies: Iterable[MinimalReservationPolicy]) -> PlaceInputs:
        there = tuple((n, self._view.silence.of(n)) for n in nodes)
        history = self._view.documents.revisions
        return PlaceInputs(there, tuple((p, history(p)) for p in policies), self._wall())

    def _cluster_of(self, seen: PlaceInputs) -> Cluster:
        """In any thread. Of nodes that did not change their rows are kept."""
        before = self._rows
        rows = {n.metadata.name: (n.metadata.resource_version, _row(n, before)) for n, _ in seen.nodes}
        self._rows = rows
        silent_s = {n.metadata.name: word.silent_s for n, word in seen.nodes}
        silent = {n.metadata.name for n, word in seen.nodes if word.doubtful}
        held = filter(None, (in_force(policy, history) for policy, history in seen.policies))
        return assemble((kept for _, kept in rows.values()), held, silent_s, silent, wall=seen.wall)

    # ------------------------------------------------------------------ one that exists already

    async def _known(self, wanted: Request) -> Placement | None:
        """The placement that is there; None when there is none that still counts, and then nothing is left of it."""
        try:
            policy = await self._store.get(KIND, wanted.namespace, placement_name(wanted))
        except NotFound:
            return None
        if not isinstance(policy, MinimalReservationPolicy) or not is_placement(policy, wanted):
            raise Conflict(f"{KIND} {wanted.namespace}/{placement_name(wanted)} is no placement; rename the workload")
        decision = await self._decide(wanted)
        if why := self._over(policy, decision.cluster):
            await self._take_back(policy, why, self._audited)
            return None
        at = decision.cluster.names.index(node_of(policy))
        if STANDS_ON not in policy.metadata.annotations and policy.spec.minimum != floor_on(decision, at):
            held = f"{reference(policy)} holds another floor on {node_of(policy)}"
            raise Conflict(f"{held}; delete it to place {wanted.name} anew")
        try:
            await self._admitted(policy)
        except (Taken, Conflict) as e:
            await self._take_back(policy, str(e), self._audited)
            return None
        return answer(decision, (at,), policy)

    def _over(self, policy: MinimalReservationPolicy, cluster: Cluster) -> str:
        """Why a placement counts no longer; empty while it does."""
        node, ends = node_of(policy), expires(policy)
        if ends is not UNSET and ends.timestamp() <= self._wall():
            return "its time is over"
        lost = node not in cluster.names or bool(cluster.silent[cluster.names.index(node)])
        return f"{node} is lost" if lost else ""

    # ------------------------------------------------------------------ a fresh one

    async def _reserve(self, wanted: Request, ttl: Duration) -> Placement:
        turned_down: dict[str, str] = {}
        for _ in range(MOST_TRIES):
            decision = await self._decide(wanted)
            left = [n for n in decision.ranking if decision.cluster.names[n] not in turned_down]
            if not left:
                break
            node = decision.cluster.names[left[0]]
            if not decision.demand.floor[left[0]].any():
                return answer(decision, left)
            try:
                policy = await self._take(decision, left[0], ttl)
            except Raced:
                continue
            except Taken as e:
                turned_down[node] = str(e)
                continue
            log.info("placement.make", policy=reference(policy), node=node, why=str(decision))
            return answer(decision, left, policy)
        refusals = "; ".join(f"{node}: {why}" for node, why in turned_down.items())
        raise Conflict(f"{wanted.name} is not placed: {refusals or await self._decide(wanted)}")

    async def _take(self, decision: PlaceDecision, at: int, ttl: Duration) -> MinimalReservationPolicy:
        """The policy that holds the floor on one node; raises Taken, and nothing is left behind."""
        wish = policy_for(decision, at, ttl)
        self._view.documents.weights.check(wish)
        admit(None, wish)
        try:
            policy = await self._store.put(wish, expect=ABSENT)
        except Conflict:
            raise Exists from None
        if not isinstance(policy, MinimalReservationPolicy):
            raise TypeError(f"the store made a {policy.kind} of a {KIND}")
        try:
            if decision.demand.payer[at] >= 0:
                await self._spoken_for(policy, decision.demand.request)
            else:
                await self._admitted(policy)
        except BaseException:
            await self._take_back(policy, "it was not admitted", self._store)  # a part of what was just announced
            raise
        return policy

    async def _admitted(self, policy: MinimalReservationPolicy) -> None:
        """Returns once the leader has admitted it; raises Taken or Conflict with its reason, or Unreachable."""
        if not policy.spec.units:
            return
        try:
            async with asyncio.timeout(self._decide_s):
                await self._verdict(policy)
        except NotFound:
            raise Taken("someone deleted the reservation meanwhile") from None
        except TimeoutError:
            problem = f"no leader decided on {policy.metadata.name} within {self._decide_s:g} s"
            raise Unreachable(f"{problem}; nothing is reserved, ask again") from None

    async def _verdict(self, policy: MinimalReservationPolicy) -> None:
        while True:
            epoch = self._view.objects.epoch
            seen = await self._store.get(KIND, policy.metadata.namespace, policy.metadata.name)
            if seen.metadata.uid != policy.metadata.uid:
                raise NotFound(f"{reference(policy)} was deleted, and made again by someone else")
            said = leaders_word(seen) if isinstance(seen, MinimalReservationPolicy) else None
            if said is not None and said.status == "True":
                return
            if said is not None and said.status == "False":
                if said.reason == "Expired" and not over(policy, self._wall()):
                    raise Conflict(f"{said.message}; it was made just now: the clocks of the managers differ, set them")
                # Another node changes nothing about what the namespace may have.
                raise Conflict(said.message) if said.reason == "NamespaceLimit" else Taken(said.message)
            await self._view.objects.moved(epoch)

    async def _spoken_for(self, policy: MinimalReservationPolicy, wanted: Request) -> None:
        """Whether there is a unit left with all others' placements counted; raises Taken.

        Everyone looks after having written, at the store itself: of two that want the last unit, the one that looks
        later sees the other, so never both keep it. Both may let go; then they try again after a random pause.
        """
        listing, nodes = await self._store.list(KIND), await self._store.list("NodeQoS")
        mine = policy.metadata.uid
        others = [p for p in listing.items if isinstance(p, MinimalReservationPolicy) and p.metadata.uid != mine]
        there = [n for n in nodes.items if isinstance(n, NodeQoS) and not report_findings(n)]
        seen, here = self._seen(there, others), wanted._replace(node=node_of(policy))
        decision = await beside(lambda: place(here, self._cluster_of(seen)))
        if not decision.ranking or decision.demand.payer[decision.ranking[0]] < 0:
            await asyncio.sleep(random.uniform(0, PAUSE_S))  # noqa: S311
            raise Raced(f"the last unit of {policy.metadata.annotations[STANDS_ON]} was taken meanwhile")

    async def _take_back(self, policy: MinimalReservationPolicy, why: str, store: Store) -> None:
        """Nobody else's of the same name. What cannot be deleted for all the writes to it ends by its ttl."""
        for _ in range(MOST_TRIES):
            try:
                stored = await self._store.get(*key_of(policy))
                if stored.metadata.uid != policy.metadata.uid:
                    return
                await store.delete(*key_of(policy), expect=stored.metadata.resource_version)
            except NotFound:
                return
            except Conflict:
                continue  # the leader has written its status
            log.info("placement.end", policy=reference(policy), why=why)
            return


def _row(node: NodeQoS, before: Mapping[str, tuple[str, Row]]) -> Row:
    revision, kept = before.get(node.metadata.name, ("", None))
    return kept if kept is not None and revision == node.metadata.resource_version else row(node)
