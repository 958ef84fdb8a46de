"""What a client applies: part of an object, as YAML or JSON."""

from __future__ import annotations

from typing import Any, NamedTuple

from j10ce.errors import Finding, Invalid, Malformed
from j10ce.manager.failure import Refusal
from j10ce.model.catalogue import Kind
from j10ce.model.kinds import API_VERSION
from j10ce.model.schema import parse_plain
from j10ce.store.revise import Key, Part

# What only the server decides; clients send back what they have read.
IGNORED = ("name", "namespace", "uid", "resourceVersion", "generation", "generateName", "creationTimestamp", "selfLink")


class Config(NamedTuple):
    said: dict[str, Any]
    uid: str = ""
    revision: str = ""  # that the caller has seen


def read(raw: bytes, kind: Kind, key: Key, part: Part) -> Config:
    """Raises Invalid, or Refusal when it speaks of another object than the path."""
    told = _plain(raw)
    meta = told.get("metadata") or {} if isinstance(told, dict) else {}
    if not isinstance(told, dict) or not isinstance(meta, dict):
        raise Invalid([Finding("", None, "not an object", "write apiVersion, kind, metadata and spec")], kind.name)
    claims = (("apiVersion", told, API_VERSION), ("kind", told, kind.name))
    places = (("name", meta, key.name), ("namespace", meta, key.namespace))
    for name, holder, right in (*claims, *places):
        if holder.get(name, right) != right:
            raise Refusal(400, "BadRequest", f"{name} is {holder[name]!r} in the body and {right!r} in the path")
    if meta.get("managedFields"):
        raise Refusal(400, "BadRequest", "metadata.managedFields must be left out of what is applied")
    uid, revision = (str(meta.get(name) or "") for name in ("uid", "resourceVersion"))
    if part == "status":
        return Config({"status": told.get("status", {})}, uid, revision)
    rest = {name: value for name, value in told.items() if name not in ("apiVersion", "kind", "metadata", "status")}
    decided = {name: value for name, value in meta.items() if name not in IGNORED}
    return Config({**rest, "metadata": decided}, uid, revision)


def _plain(raw: bytes) -> Any:
    try:
        return parse_plain(raw)
    except Malformed:
        return _yaml(raw)


def _yaml(raw: bytes) -> Any:
    try:
        import yaml
    except ImportError:
        raise Refusal(415, "UnsupportedMediaType", "this server reads no YAML: send JSON, or install PyYAML") from None

    class Plain(yaml.SafeLoader):
        """YAML of JSON's values. An alias is refused: a few lines of them stand for more than memory holds."""

        yaml_implicit_resolvers = {  # noqa: RUF012
            first: [(tag, pattern) for tag, pattern in rows if not tag.endswith(":timestamp")]
            for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not read here")
            return super().compose_node(parent, index)

    try:
        return yaml.load(raw, Plain)  # noqa: S506  a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise Malformed([Finding("", None, f"neither JSON nor YAML: {e}")]) from None
