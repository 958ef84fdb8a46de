"""The documents by which clients find out what there is, as Kubernetes serves them."""

from __future__ import annotations

from typing import Any, Final

from j10ce import __version__
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.kinds import API_VERSION, GROUP, VERSION, PolicyRevision

READ: Final = ("get", "list")
WRITE: Final = ("create", "delete", "patch", "update", "watch")


def version() -> dict[str, str]:
    major, minor, _ = __version__.split(".", 2)
    return {"major": major, "minor": minor, "gitVersion": f"v{__version__}", "platform": "linux"}


def api() -> dict[str, Any]:
    return {"kind": "APIVersions", "apiVersion": "v1", "versions": [], "serverAddressByClientCIDRs": []}


def group_list() -> dict[str, Any]:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group()]}


def group() -> dict[str, Any]:
    here = {"groupVersion": API_VERSION, "version": VERSION}
    return {"kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": [here], "preferredVersion": here}


def resources() -> dict[str, Any]:
    found = [entry for kind in KINDS.values() for entry in _entries(kind)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": API_VERSION, "resources": found}


def _entries(kind: Kind) -> list[dict[str, Any]]:
    entry: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.name.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": sorted((*READ, *WRITE) if kind.stored else READ),
        "shortNames": list(kind.short),
        "categories": ["j10ce"],
    }
    if not kind.stored or kind.struct is PolicyRevision:
        return [entry]
    status = {"name": f"{kind.plural}/status", "singularName": "", "namespaced": kind.namespaced, "kind": kind.name}
    return [entry, {**status, "verbs": ["get", "patch", "update"]}]
