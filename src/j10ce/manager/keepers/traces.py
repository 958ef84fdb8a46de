"""The far end of a trace: what nodes report to have carried out becomes a span of the request that asked for it."""

from __future__ import annotations

import asyncio

from j10ce.manager.documents.documents import Nodes
from j10ce.manager.documents.view import View
from j10ce.manager.telemetry.trace import Tracer
from j10ce.model.kinds import NodeQoS
from j10ce.model.stored import Event


async def tell_applied(view: View, tracer: Tracer) -> None:
    """For ever, on the leader, so that every change is one span; what is there when it begins has its span."""
    begun = False

    def take(event: Event, _: Nodes) -> None:
        node = event.object
        if not begun or not isinstance(node, NodeQoS) or event.type == "DELETED":
            return
        before = event.old.status.node.applied if isinstance(event.old, NodeQoS) else ()
        for change in node.status.node.applied:
            if change not in before:
                tracer.applied(node.metadata.name, change)

    await view.ready()
    with view.heard(take):
        begun = True
        await asyncio.Event().wait()
