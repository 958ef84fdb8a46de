"""The documents by which clients find out what there is, as Kubernetes serves them: one by one, and all in one."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from j10ce import __version__
from j10ce.manager.access.roles import DISCOVERY, SECRET, enter
from j10ce.manager.asgi.requests import json, not_allowed
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.kinds import API_VERSION, GROUP, VERSION, PolicyRevision

Json = dict[str, Any]
READ: Final = ("get", "list")
WRITE: Final = ("create", "delete", "patch", "update", "watch")
CATEGORY: Final = "j10ce"
# Old clients order the parameters as they like, and ask for several versions.
AGGREGATED: Final = re.compile(r"as=APIGroupDiscoveryList;g=apidiscovery\.k8s\.io;v=(v2beta1|v2)(?=[,; ]|$)")


def version() -> dict[str, str]:
    major, minor, _ = __version__.split(".", 2)
    return {"major": major, "minor": minor, "gitVersion": f"v{__version__}", "platform": "linux"}


async def core(request: Request) -> Response:
    """/api: Kubernetes' own kinds, of which there are none here."""
    legacy = {"kind": "APIVersions", "apiVersion": "v1", "versions": [], "serverAddressByClientCIDRs": []}
    return _negotiated(request, legacy, [])


async def groups(request: Request) -> Response:
    """/apis"""
    legacy = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group()]}
    return _negotiated(request, legacy, [_group_in_one()])


def group() -> Json:
    here = {"groupVersion": API_VERSION, "version": VERSION}
    return {"kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": [here], "preferredVersion": here}


def resources() -> Json:
    entries = [entry for kind in KINDS.values() for entry in _entries(kind)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": API_VERSION, "resources": entries}


def _negotiated(request: Request, legacy: Json, in_one: list[Json]) -> Response:
    enter("get", DISCOVERY)
    if request.method != "GET":
        raise not_allowed(request, ("GET",))
    asked = (_sorted(part) for part in request.headers.get("accept", "").split(","))
    wanted = next((match[1] for part in asked if (match := AGGREGATED.search(part))), "")
    if not wanted:
        return json(msgspec.json.encode(legacy))
    listing = {"kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{wanted}", "metadata": {}}
    media = f"application/json;g=apidiscovery.k8s.io;v={wanted};as=APIGroupDiscoveryList"
    return Response(msgspec.json.encode(listing | {"items": in_one}), media_type=media)


def _sorted(media: str) -> str:
    """A media type with its parameters in one order."""
    _, *parameters = (part.strip() for part in media.split(";"))
    return ";".join(sorted(parameters))


def _group_in_one() -> Json:
    here = {"version": VERSION, "freshness": "Current", "resources": list(map(_in_one, KINDS.values()))}
    return {"metadata": {"name": GROUP}, "versions": [here]}


def _in_one(kind: Kind) -> Json:
    response = {"responseKind": {"group": GROUP, "version": VERSION, "kind": kind.name}}
    first, *rest = _entries(kind)
    shared = {name: first[name] for name in ("verbs", "shortNames", "categories")}
    status = [{"subresource": "status", "verbs": entry["verbs"], **response} for entry in rest]
    return {
        "resource": kind.plural,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": first["singularName"],
        **response,
        **shared,
        **({"subresources": status} if status else {}),
    }


def _entries(kind: Kind) -> list[Json]:
    entry: Json = {
        "name": kind.plural,
        "singularName": kind.name.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": sorted((*READ, *WRITE) if kind.stored else READ),
        "shortNames": list(kind.short),
        # `kubectl get j10ce` lists what every control plane has, and whoever may read may see.
        "categories": [CATEGORY] if kind.stored and kind.name not in SECRET else [],
    }
    if not kind.stored or kind.struct is PolicyRevision:
        return [entry]
    status = {"name": f"{kind.plural}/status", "singularName": "", "namespaced": kind.namespaced, "kind": kind.name}
    return [entry, {**status, "verbs": ["get", "patch", "update"]}]
