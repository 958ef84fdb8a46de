"""What a write says to an API server: no more than its caller decides, so that everything else stays as it is."""

from __future__ import annotations

from typing import Any, Final

from j10ce.model.kinds import Object, PolicyRevision
from j10ce.model.schema import plain
from j10ce.model.stored import Part

# Metadata that belongs to whoever writes the spec, and how it is empty.
OWN: Final[dict[str, Any]] = {"labels": {}, "annotations": {}, "ownerReferences": []}


def creation(obj: Object) -> dict[str, Any]:
    """A new object; the rest of its metadata is the API server's, and it has no status yet."""
    whole = plain(obj)
    metadata = {key: value for key, value in whole["metadata"].items() if key in (*OWN, "name", "namespace")}
    return {"apiVersion": obj.api_version, "kind": obj.kind, "metadata": metadata, **_wish(obj, whole)}


def changes(obj: Object, part: Part, revision: str = "") -> list[dict[str, Any]]:
    """A JSON patch that replaces one half of an object; Conflict unless it is at `revision`, where one is given."""
    whole = plain(obj)
    if part == "status":
        values = {"/status": whole["status"]}
    else:
        values = {f"/metadata/{key}": whole["metadata"].get(key, empty) for key, empty in OWN.items()}
        values |= {f"/{key}": value for key, value in _wish(obj, whole).items()}
    if revision:
        values["/metadata/resourceVersion"] = revision
    return [{"op": "add", "path": path, "value": value} for path, value in values.items()]


def _wish(obj: Object, whole: dict[str, Any]) -> dict[str, Any]:
    names = ("revision", "data") if isinstance(obj, PolicyRevision) else ("spec",)
    return {name: whole[name] for name in names}
