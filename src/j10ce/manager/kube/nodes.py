"""What the leader writes about nodes of Kubernetes: whose NodeQoS is whose, and what may be lent on each."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
import structlog
from msgspec.structs import replace

from j10ce.errors import Conflict, NotFound
from j10ce.kube.client import FIELD_MANAGER, KubeClient
from j10ce.manager.documents.view import View
from j10ce.manager.kube.cluster_feed import Occupants
from j10ce.model.kinds import NodeQoS, Owner
from j10ce.model.kube.native import Node
from j10ce.model.quantity import Quantity
from j10ce.store.store import Store

log = structlog.get_logger()
OURS: Final = "j10ce.io/"
THEIRS: Final = "kubernetes.io/"  # the same as Koordinator's pods ask for it
LENT: Final = ("batch-cpu", "batch-memory", "mid-cpu", "mid-memory")
LOOK_S: Final = 5.0
AGAIN_S: Final = 300.0  # between looks at who writes resources that are not ours


async def keep_owned(store: Store, view: View, occupants: Occupants) -> None:
    """For ever. A NodeQoS has the labels of its Node, so that node selectors mean the same to everyone, and ends with
    it: the Node owns it."""
    await view.ready()
    await occupants.ready()
    while True:
        natives = {node.metadata.name: node for node in occupants.nodes()}
        for node_qos in view.all(NodeQoS):
            node = natives.get(node_qos.metadata.name)
            if node is not None and (owned := belonging(node_qos, node)) != node_qos:
                await _put(store, owned)
        await asyncio.sleep(LOOK_S)


def belonging(node_qos: NodeQoS, node: Node) -> NodeQoS:
    owner = Owner(api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid)
    others = tuple(o for o in node_qos.metadata.owner_references if o.kind != "Node")
    return replace(
        node_qos, metadata=replace(node_qos.metadata, labels=node.metadata.labels, owner_references=(*others, owner))
    )


async def _put(store: Store, node: NodeQoS) -> None:
    try:
        await store.put(node, expect=node.metadata.resource_version)
    except (Conflict, NotFound):
        return  # it reported meanwhile; the next look sees it as it is
    log.info("node.own", node=node.metadata.name)


async def keep_extended(client: KubeClient, view: View, occupants: Occupants, *, theirs: bool = False) -> None:
    """For ever. Every Node advertises what its NodeQoS says may be lent, and nothing once there is none.

    The NodeQoS does not follow amounts that hardly move, so they do not move here either. `theirs`: by Koordinator's
    names, too, on nodes where nobody else writes them.
    """
    await view.ready()
    await occupants.ready()
    also = TheirNames(client) if theirs else None
    while True:
        lent = {node.metadata.name: node.status.overcommit for node in view.all(NodeQoS)}
        for node in occupants.nodes():
            name = node.metadata.name
            patch = difference(node, lent.get(name, {}))
            if also:
                patch |= await also.difference(node, lent.get(name, {}))
            if patch:
                await _advertise(client, name, patch)
        await asyncio.sleep(LOOK_S)


class TheirNames:
    """The same by Koordinator's names, on nodes where nobody else writes them."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._again: dict[str, float] = {}  # nodes that are somebody else's: when to look again

    async def difference(self, node: Node, lent: Mapping[str, Quantity]) -> dict[str, str | None]:
        name, now = node.metadata.name, asyncio.get_running_loop().time()
        patch = difference(node, lent, THEIRS)
        if not patch or now < self._again.get(name, now):
            return {}
        others = await self._writers(name, patch) - {FIELD_MANAGER}
        if not others:
            return patch
        log.info("node.leave", node=name, resources=sorted(patch), written_by=sorted(others))
        self._again[name] = now + AGAIN_S
        return {}

    async def _writers(self, node: str, names: Collection[str]) -> set[str]:
        try:
            meta = msgspec.json.decode(await self._client.get(f"/api/v1/nodes/{node}"))["metadata"]
        except NotFound:
            return set()
        return {entry["manager"] for entry in meta.get("managedFields", ()) if _written(entry) & {*names}}


def _written(entry: dict[str, Any]) -> set[str]:
    """Resources that an entry of `managedFields` speaks of."""
    parts = entry.get("fieldsV1", {}).get("f:status", {})
    return {name.removeprefix("f:") for part in ("f:capacity", "f:allocatable") for name in parts.get(part, {})}


def advertised(lent: Mapping[str, Quantity], prefix: str = OURS) -> dict[str, str]:
    """As extended resources, which are whole numbers: thousandths of CPUs, and bytes."""
    return {
        prefix + name: str(lent[name].millicores() if name.endswith("-cpu") else lent[name].bytes())
        for name in LENT
        if name in lent
    }


def difference(node: Node, lent: Mapping[str, Quantity], prefix: str = OURS) -> dict[str, str | None]:
    """What to patch; None removes. Resources of ours are all that it speaks of."""
    wanted = advertised(lent, prefix)
    names = {prefix + name for name in LENT}
    has = {name: str(int(q.amount)) for name, q in node.status.allocatable.items() if name in names}
    changes: dict[str, str | None] = {name: value for name, value in wanted.items() if has.get(name) != value}
    return changes | dict.fromkeys(has.keys() - wanted.keys())


async def _advertise(client: KubeClient, node: str, patch: Mapping[str, str | None]) -> None:
    body: dict[str, Any] = {"status": {"capacity": patch, "allocatable": patch}}
    try:
        await client.patch(f"/api/v1/nodes/{node}/status", body, "merge")
    except NotFound:
        return
    log.info("node.advertise", node=node, **{name.removeprefix(OURS): value for name, value in patch.items()})
