"""What all strategies together say of one node, asked of whoever serves the objects."""

from __future__ import annotations

from typing import Any, Final

from j10ce.cli.client import Client
from j10ce.cli.paths import BASE, path
from j10ce.errors import Denied, NotFound
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import NodeQoS, NodeStrategy, PolicyRevision
from j10ce.model.schema import convert
from j10ce.model.text.cells import dig
from j10ce.policy.document.document import by_owner, labels_of, spread
from j10ce.policy.strategy import EffectiveStrategy, merged

KIND: Final = "NodeStrategy"


def strategy_of(api: Client, node: dict[str, Any]) -> EffectiveStrategy:
    """In the revisions that the node has to obey; nothing where the caller may not see it, or no such kind is served.

    A control plane of ours has a document for every node; on Kubernetes it is made here, as agents make it.
    """
    try:
        document = api.get(f"{BASE}/nodedocuments/{node['metadata']['name']}")
        return merged(convert(raw, NodeStrategy, []) for raw in document.get("strategies", ()))
    except Denied:
        return EffectiveStrategy()
    except NotFound:
        return _made(api, node)


def _made(api: Client, node: dict[str, Any]) -> EffectiveStrategy:
    try:
        strategies = [convert(raw, NodeStrategy, []) for raw in _items(api, KIND)]
        history = by_owner(convert(raw, PolicyRevision, []) for raw in _items(api, "PolicyRevision"))
    except (Denied, NotFound):
        return EffectiveStrategy()
    name = node["metadata"]["name"]
    labels = {**_labels(api, name), **labels_of(convert(node, NodeQoS, []))}
    here = (spread(s, history.get(s.metadata.uid, ())).on(name, labels) for s in strategies)
    return merged(s for s in here if isinstance(s, NodeStrategy))


def _labels(api: Client, node: str) -> dict[str, str]:
    """Of the Node itself; those of its NodeQoS go before them."""
    try:
        return dict(dig(api.get(f"/api/v1/nodes/{node}"), "metadata.labels") or {})
    except (Denied, NotFound):
        return {}


def _items(api: Client, kind: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = api.get(path(KINDS[kind], None))["items"]
    return [item | {"apiVersion": "j10ce.io/v1alpha1", "kind": kind} for item in listed]
