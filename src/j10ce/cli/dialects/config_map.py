"""Koordinator's ConfigMap among the objects of files, and the nodes beside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from j10ce.dialects.koordinator.config.layers import NodeWords
from j10ce.dialects.koordinator.native.node_layers import KnownNode
from j10ce.dialects.koordinator.native.strategies import Generated, generated
from j10ce.errors import Finding, Invalid
from j10ce.model.schema import plain
from j10ce.model.text.cells import dig

DIALECT: Final = "koordinator"
CONFIG_MAP: Final = "slo-controller-config"


def is_theirs(raw: dict[str, Any]) -> bool:
    return raw.get("kind") == "ConfigMap" and dig(raw, "metadata.name") == CONFIG_MAP


def is_strange(raw: dict[str, Any]) -> bool:
    return raw.get("kind") == "ConfigMap" and not is_theirs(raw)


def converted(raws: Iterable[dict[str, Any]]) -> Generated:
    """Raises Invalid where the ConfigMap is none; what is wrong in its keys is among the findings."""
    listed = [*raws]
    texts: dict[str, str] = {}
    for raw in filter(is_theirs, listed):
        texts |= _texts(raw)
    return generated(texts, [_node(raw) for raw in listed if raw.get("kind") == "Node"])


def _texts(raw: dict[str, Any]) -> dict[str, str]:
    data = raw.get("data") or {}
    if not isinstance(data, dict):
        raise Invalid([Finding("data", None, "not a mapping", "write keys with one JSON document each")], CONFIG_MAP)
    wrong = [key for key, text in data.items() if not isinstance(text, str)]
    if wrong:
        hint = "write the JSON as a text: `key: |` and the document below it"
        raise Invalid([Finding(f"data.{key}", None, "not a text", hint) for key in wrong], CONFIG_MAP)
    return {str(key): text for key, text in data.items()}


def _node(raw: dict[str, Any]) -> KnownNode:
    labels, annotations = (dig(raw, f"metadata.{name}") or {} for name in ("labels", "annotations"))
    words = [{str(k): str(v) for k, v in said.items()} for said in (labels, annotations)]
    return KnownNode(str(dig(raw, "metadata.name") or ""), NodeWords(*words))


def manifest(obj: object) -> dict[str, Any]:
    """As a person would have written it: without a status, and without sections that say nothing."""
    whole = plain(obj)
    tidy: dict[str, Any] = _tidied({key: whole[key] for key in ("apiVersion", "kind", "metadata", "spec")})
    return tidy


def _tidied(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: made for key, below in value.items() if (made := _tidied(below)) != {}}
