"""What the metrics say of objects that make no sense."""

from __future__ import annotations

import asyncio

from j10ce.manager.documents.fleet_metrics import families, unreadable
from j10ce.manager.documents.view import View
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.model.kinds import Meta, NodeQoS
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import profile, reservation


def test_objects_that_make_no_sense_are_counted_by_kind() -> None:
    metrics = Metrics()
    metrics.also(lambda: unreadable({"Hold": 2, "QoSProfile": 0}))
    text = bytes(metrics.render().body).decode().splitlines()
    assert 'j10ce_objects_unreadable{kind="Hold"} 2.0' in text
    assert 'j10ce_objects_unreadable{kind="QoSProfile"} 0.0' in text


async def test_what_anybody_may_read_names_nobody() -> None:
    """On Kubernetes /metrics asks for no right: counts, and no names of policies, namespaces or nodes."""
    store = MemoryStore(lambda: 0.0)
    for obj in (reservation("secretive", namespace="hidden", cpu="1", units=2), profile("covert")):
        await store.put(obj)
    await store.put(NodeQoS(metadata=Meta(name="bunker")))
    view, metrics = View(store), Metrics()
    metrics.also(lambda: families(view))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(view.run())
        await view.ready()
        text = bytes(metrics.render().body).decode()
        running.cancel()
    await store.close()
    assert 'j10ce_policies{phase="Pending"} 1.0' in text
    assert not [name for name in ("secretive", "hidden", "covert", "bunker") if name in text]
