"""What a client applies: part of an object, as YAML or JSON."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from j10ce.errors import Finding, Invalid, shown
from j10ce.http.status import Refusal
from j10ce.manager.asgi.beside import beside
from j10ce.manager.changes import plain_yaml
from j10ce.manager.identity import Role, current
from j10ce.model.catalogue import Kind
from j10ce.model.kinds import API_VERSION
from j10ce.model.schema import parse_sent, refuse_repeated
from j10ce.model.stored import Key, Part

# What only the server decides; clients send back what they have read.
IGNORED = ("name", "namespace", "uid", "resourceVersion", "generation", "generateName", "creationTimestamp", "selfLink")


class AppliedConfig(NamedTuple):
    said: dict[str, Any]
    uid: str = ""
    revision: str = ""  # that the caller has seen


async def read(raw: bytes, kind: Kind, key: Key, part: Part, strays: list[Finding] | None = None) -> AppliedConfig:
    """Raises Invalid, or Refusal when it speaks of another object than the path; `strays` takes repeated keys."""
    body = await _plain(raw, strays)
    meta = body.get("metadata") or {} if isinstance(body, dict) else {}
    if not isinstance(body, dict) or not isinstance(meta, dict):
        raise Invalid([Finding("", None, "not an object", "write apiVersion, kind, metadata and spec")], kind.name)
    claims = (("apiVersion", body, API_VERSION), ("kind", body, kind.name))
    places = (("name", meta, key.name), ("namespace", meta, key.namespace))
    for name in ("apiVersion", "kind"):
        if not body.get(name):
            raise Refusal(400, f"{name} is missing: what is applied says what it is")
    for name, holder, right in (*claims, *places):
        if holder.get(name, right) != right:
            said = shown(holder[name])
            raise Refusal(400, f"{name} is {said} in the body and {right!r} in the path")
    if meta.get("managedFields"):
        raise Refusal(400, "metadata.managedFields must be left out of what is applied")
    uid, revision = (str(meta.get(name) or "") for name in ("uid", "resourceVersion"))
    if part == "status":
        return AppliedConfig({"status": body.get("status", {})}, uid, revision)
    rest = {name: value for name, value in body.items() if name not in ("apiVersion", "kind", "metadata", "status")}
    decided = {name: value for name, value in meta.items() if name not in IGNORED and value is not None}
    return AppliedConfig({**rest, "metadata": decided}, uid, revision)


async def _plain(raw: bytes, strays: list[Finding] | None) -> Any:
    if raw.lstrip()[:1] in (b"{", b""):
        body = parse_sent(raw)
        refuse_repeated(raw, strays)
        return body
    if current().caller.role is Role.NODE:
        raise Refusal(415, "no YAML is read from a node: send JSON")
    try:
        return await beside(partial(plain_yaml.read, raw))
    except ImportError:
        raise Refusal(415, "this server reads no YAML: send JSON, or install PyYAML") from None
