"""Nodes that fall silent: a report has a best-before date."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import structlog
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.errors import Conflict, NotFound
from j10ce.manager.pace import unhurried
from j10ce.manager.view import View
from j10ce.model.kinds import Condition, NodeQoS
from j10ce.store.store import Store

log = structlog.get_logger()
SILENT_S: Final = 40.0  # agents report every ten seconds
LOOK_S: Final = 5.0


async def judge_nodes(store: Store, view: View, wall: Callable[[], float]) -> None:
    """Keep the Ready condition of every node true, for ever."""
    await view.ready()
    while True:
        async for node in unhurried(view.all(NodeQoS)):
            await _judge(store, node, wall())
        await asyncio.sleep(LOOK_S)


async def _judge(store: Store, node: NodeQoS, wall: float) -> None:
    ready = readiness(node, wall)
    before = next((c for c in node.status.conditions if c.type == "Ready"), None)
    if before and before.status == ready.status:
        return
    others = tuple(c for c in node.status.conditions if c.type != "Ready")
    status = replace(node.status, conditions=(*others, ready))
    try:
        await store.put(replace(node, status=status), expect=node.metadata.resource_version, part="status")
    except (Conflict, NotFound):
        return  # its next report brings us back
    log.info("node.judge", node=node.metadata.name, ready=ready.status, why=ready.message)


def readiness(node: NodeQoS, wall: float) -> Condition:
    silent_s = stale_since(node, wall)
    now = datetime.fromtimestamp(int(wall), UTC)
    if silent_s is None:
        return Condition(type="Ready", status="True", reason="Reporting", last_transition_time=now)
    told = "never reported" if silent_s == float("inf") else f"silent for {silent_s:.0f} s"
    return Condition(type="Ready", status="Unknown", reason="Silent", message=told, last_transition_time=now)


def stale_since(node: NodeQoS, wall: float) -> float | None:
    """Seconds of silence of a node that should have reported; None while its report counts."""
    heartbeat = node.status.node.heartbeat
    if heartbeat is UNSET:
        return float("inf")
    silent_s = wall - heartbeat.timestamp()
    return silent_s if silent_s > SILENT_S else None
