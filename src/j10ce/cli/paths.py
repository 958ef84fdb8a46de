"""Where objects live: the paths of the API, and the names people use for kinds and profiles."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.kinds import GROUP, VERSION
from j10ce.model.text.cells import dig
from j10ce.policy.profiles import canonical

BASE = f"/apis/{GROUP}/{VERSION}"


def path(kind: Kind, namespace: str | None, name: str = "") -> str:
    scope = f"/namespaces/{_segment(namespace)}" if kind.namespaced and namespace is not None else ""
    return f"{BASE}{scope}/{kind.plural}" + (f"/{_segment(name)}" if name else "")


def namespace_of(raw: dict[str, Any]) -> str:
    return str(dig(raw, "metadata.namespace") or "default")


def same_object(raw: Any) -> tuple[str, ...]:
    """(kind, namespace, name), equal for two writings of one object; empty where it has no name yet."""
    kind, name = dig(raw, "kind"), dig(raw, "metadata.name")
    if not kind or not name:
        return ()
    known = KINDS.get(kind)
    return kind, "" if known and not known.namespaced else namespace_of(raw), str(name)


def apart(kind: Kind, namespace: str, name: str) -> tuple[str, str]:
    """(namespace, name): `payments/db` says both in one word."""
    if not kind.namespaced or "/" not in name:
        return namespace, name
    before, _, after = name.partition("/")
    return before, after


def name_of(kind: Kind, name: str) -> str:
    return canonical(name) if kind.name == "QoSProfile" else name


def title(raw: dict[str, Any]) -> str:
    return f"{raw['kind'].lower()}/{raw['metadata']['name']}"


def _segment(text: str) -> str:
    """One step of a path, whatever was typed."""
    return quote(text, safe="")
