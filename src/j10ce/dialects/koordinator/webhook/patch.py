"""A strategic merge patch of a pod: objects merge, lists of named things merge by their names, others are replaced.

A null removes a field, `$patch: delete` an item of a list, `$patch: replace` everything beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Raw = dict[str, Any]
DIRECTIVE: Final = "$patch"
DELETE: Final = "delete"
REPLACE: Final = "replace"
# The field by which items of a list are told apart.
KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "ownerReferences": "uid",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
    "schedulingGates": "name",
}


def patched(whole: Raw, patch: Raw) -> Raw:
    """`whole` with `patch` merged in; neither is changed."""
    if patch.get(DIRECTIVE) == REPLACE:
        return {name: value for name, value in patch.items() if name != DIRECTIVE and value is not None}
    out = dict(whole)
    for name, value in patch.items():
        if name == DIRECTIVE:
            continue
        if value is None:
            out.pop(name, None)
        else:
            out[name] = _merged(name, out.get(name), value)
    return out


def _merged(name: str, old: Any, new: Any) -> Any:
    if isinstance(new, dict):
        return patched(old if isinstance(old, dict) else {}, new)
    key = KEYS.get(name)
    if isinstance(new, list) and key is not None and all(isinstance(item, dict) for item in new):
        return _items(old if isinstance(old, list) else [], new, key)
    return new


def _items(old: list[Any], new: list[Raw], key: str) -> list[Any]:
    if any(item.get(DIRECTIVE) == REPLACE for item in new):
        return [item for item in new if DIRECTIVE not in item]
    gone = [item.get(key) for item in new if item.get(DIRECTIVE) == DELETE]
    out = [item for item in old if not (isinstance(item, dict) and item.get(key) in gone)]
    for item in new:
        if item.get(DIRECTIVE) == DELETE:
            continue
        at = next((n for n, held in enumerate(out) if isinstance(held, dict) and held.get(key) == item.get(key)), None)
        if at is None:
            out.append(patched({}, item))
        else:
            out[at] = patched(out[at], item)
    return out
