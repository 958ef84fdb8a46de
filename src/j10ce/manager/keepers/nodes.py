"""Nodes that fall silent: what their condition Ready says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from math import inf
from typing import Final

import structlog
from msgspec.structs import replace

from j10ce.daemon.pace import unhurried
from j10ce.errors import Conflict, NotFound
from j10ce.manager.documents.silence import LATE, LATE_S, Word
from j10ce.manager.documents.view import View
from j10ce.model.kinds import Condition, NodeQoS
from j10ce.store.store import Store

log = structlog.get_logger()
LOOK_S: Final = 5.0
BAD: Final = "BadReport"  # reason of the condition Ready: what it says makes no sense


async def judge_nodes(store: Store, view: View, wall: Callable[[], float]) -> None:
    """Keep the Ready condition of every node true, for ever."""
    await view.ready()
    while True:
        async for node in unhurried(view.all(NodeQoS)):
            await judge(store, view, node, wall())
        await asyncio.sleep(LOOK_S)


async def judge(store: Store, view: View, node: NodeQoS, wall: float) -> None:
    word, nonsense = view.silence.of(node), view.nonsense.get(node.metadata.name, "")
    before = next((c for c in node.status.conditions if c.type == "Ready"), None)
    if before and before.status == "Unknown" and word.doubtful and not word.lost and not nonsense:
        return  # nobody has heard of it since it fell silent
    ready = readiness(word, wall, nonsense)
    if before and (before.status, before.reason) == (ready.status, ready.reason):
        return
    if before and before.status == ready.status:
        ready = replace(ready, last_transition_time=before.last_transition_time)
    others = tuple(c for c in node.status.conditions if c.type != "Ready")
    status = replace(node.status, conditions=(*others, ready))
    try:
        await store.put(replace(node, status=status), expect=node.metadata.resource_version, part="status")
    except (Conflict, NotFound):
        return  # its next report brings us back
    log.info("node.judge", node=node.metadata.name, ready=ready.status, why=ready.message)


def readiness(word: Word, wall: float, nonsense: str = "") -> Condition:
    now = datetime.fromtimestamp(int(wall), UTC)
    if nonsense:
        return Condition(type="Ready", status="False", reason=BAD, message=nonsense, last_transition_time=now)
    if not word.lost:
        late = word.silent_s > LATE_S
        reason, why = (LATE, f"no report for {LATE_S:g} s") if late else ("Reporting", "its agent reports")
        return Condition(type="Ready", status="True", reason=reason, message=why, last_transition_time=now)
    why = "never reported" if word.silent_s == inf else f"silent for {word.silent_s:.0f} s"
    return Condition(type="Ready", status="Unknown", reason="Silent", message=why, last_transition_time=now)
