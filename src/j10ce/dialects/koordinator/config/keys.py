"""The table of keys of the ConfigMap; reading them, and keeping the last good value of each.

A cluster strategy that is wrong leaves the whole key as it was. A node entry that is wrong is dropped alone: the nodes
that it selects get the cluster's strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from j10ce.dialects.koordinator.config import (
    burst,
    colocation,
    host_apps,
    qos,
    qos_rules,
    ratios,
    system,
    threshold,
)
from j10ce.dialects.koordinator.config.fields import Plain
from j10ce.dialects.koordinator.reading import bearable, below, checked, read_text
from j10ce.errors import Finding
from j10ce.model.kinds import Selector
from j10ce.model.parts.strict import Strict
from j10ce.model.schema import plain
from j10ce.model.text.near import one_of

CLUSTER: Final = "clusterStrategy"
INLINE: Final = ""
MOST_ENTRIES: Final = 256  # of one key: each is compared with every other


class KeyShape(NamedTuple):
    """How the strategy of a key is written: inline or below a field of its own, with entries for nodes beside it."""

    struct: type[Strict] | None  # None: opaque, a third party's
    defaults: Plain
    cluster: str  # the field that holds the cluster's strategy
    entries: str  # the field that holds the entries for nodes
    rules: Callable[[Any], Iterable[Finding]]


def _no_rules(_: object) -> tuple[Finding, ...]:
    return ()


SHAPES: Final = {
    "colocation-config": KeyShape(
        colocation.Colocation, colocation.DEFAULTS, INLINE, "nodeConfigs", colocation.findings
    ),
    "resource-threshold-config": KeyShape(
        threshold.Threshold, threshold.DEFAULTS, CLUSTER, "nodeStrategies", threshold.findings
    ),
    "resource-qos-config": KeyShape(qos.ResourceQos, qos.DEFAULTS, CLUSTER, "nodeStrategies", qos_rules.findings),
    "cpu-burst-config": KeyShape(burst.BurstWish, burst.DEFAULTS, CLUSTER, "nodeStrategies", _no_rules),
    "system-config": KeyShape(system.System, system.DEFAULTS, CLUSTER, "nodeStrategies", system.findings),
    "host-application-config": KeyShape(
        host_apps.HostApplications, host_apps.DEFAULTS, INLINE, "nodeConfigs", host_apps.findings
    ),
    "cpu-normalization-config": KeyShape(
        ratios.CpuNormalization, ratios.NORMALIZATION_DEFAULTS, INLINE, "nodeConfigs", ratios.normalization_findings
    ),
    "resource-amplification-config": KeyShape(
        ratios.Amplification, ratios.AMPLIFICATION_DEFAULTS, INLINE, "nodeConfigs", ratios.amplification_findings
    ),
}
OPAQUE: Final = KeyShape(None, {}, CLUSTER, "nodeStrategies", _no_rules)


class NodeEntry(NamedTuple):
    name: str
    selector: Selector
    overlay: Plain  # empty where it was wrong: the cluster's strategy holds


class KeyConfig(NamedTuple):
    """One key as it was accepted."""

    cluster: Plain
    entries: tuple[NodeEntry, ...] = ()


def read_key(key: str, text: str, shape: KeyShape) -> tuple[KeyConfig | None, list[Finding]]:
    """One key; None where the cluster's strategy is wrong."""
    data, odd = read_text(text, key)
    findings = [*odd]
    if data is None and odd:
        return None, findings
    if not isinstance(data, dict):
        return None, [*findings, Finding(key, text, "not an object", "write {…} with a strategy in it")]
    rest = {name: value for name, value in data.items() if name != shape.entries}
    if shape.cluster == INLINE:
        cluster, path = rest, key
    else:
        cluster, path = rest.pop(shape.cluster, {}), f"{key}.{shape.cluster}"
        findings += [_stray(key, name, shape) for name in rest]
    problems = overlay_findings(shape, cluster, {}, path)
    findings += problems
    if not all(map(bearable, problems)):
        return None, findings
    known = known_fields(shape, cluster)
    entries, wrong = _entries(shape, known, data.get(shape.entries, []), f"{key}.{shape.entries}")
    return KeyConfig(known, tuple(entries)), findings + wrong


def _stray(key: str, name: str, shape: KeyShape) -> Finding:
    return Finding(f"{key}.{name}", None, "unknown field", one_of(name, (shape.cluster, shape.entries)))


def _entries(shape: KeyShape, cluster: Plain, raw: Any, path: str) -> tuple[list[NodeEntry], list[Finding]]:
    if not isinstance(raw, list) or len(raw) > MOST_ENTRIES:
        return [], [Finding(path, None, "not a list of entries", f"write a list of at most {MOST_ENTRIES}")]
    entries, findings = [], list[Finding]()
    for n, item in enumerate(raw):
        entry, problems = _entry(shape, cluster, item, f"{path}[{n}]")
        findings += problems
        if entry is not None:
            entries.append(entry)
    return entries, findings


def _entry(shape: KeyShape, cluster: Plain, item: Any, path: str) -> tuple[NodeEntry | None, list[Finding]]:
    if not isinstance(item, dict):
        return None, [Finding(path, None, "not an object", "write {name, nodeSelector, …}")]
    overlay = {name: value for name, value in item.items() if name not in ("name", "nodeSelector")}
    findings = [*_name(item.get("name", ""), f"{path}.name")]
    selector, problems = checked(item.get("nodeSelector"), Selector, f"{path}.nodeSelector")
    findings += problems
    if selector is None or problems:  # a selector that lost a word would select others
        return None, findings
    wrong = overlay_findings(shape, overlay, cluster, path)
    good = all(map(bearable, wrong))
    name = item.get("name") if isinstance(item.get("name"), str) else ""
    return NodeEntry(str(name), selector, known_fields(shape, overlay) if good else {}), findings + wrong


def _name(name: Any, path: str) -> Iterator[Finding]:
    if not isinstance(name, str) or not name:
        problems = name if isinstance(name, int | float) else None
        yield Finding(path, problems, "no name", "name the entry: `describe node` says which one holds")


def overlay_findings(shape: KeyShape, overlay: Any, under: Plain, path: str) -> list[Finding]:
    """All that is wrong with a strategy that lies over the defaults and `under`."""
    if shape.struct is None:
        right = isinstance(overlay, dict)
        return [] if right else [Finding(path, None, "not an object", "write a strategy")]
    _, findings = checked(overlay, shape.struct, path)
    if not all(map(bearable, findings)):
        return findings
    whole = merged(merged(shape.defaults, under), known_fields(shape, overlay))
    effective, _ = checked(whole, shape.struct, path)
    if effective is None:  # each part was right, so the whole is
        return [*findings, Finding(path, None, "does not fit the layers below it", "correct it")]
    return [*findings, *below(path, shape.rules(effective))]


def known_fields(shape: KeyShape, overlay: Plain) -> Plain:
    """Without what nobody knows, wherever it is."""
    value = checked(overlay, shape.struct, "")[0] if shape.struct is not None else None
    fields: Plain = plain(value) if value is not None else overlay if shape.struct is None else {}
    return fields


def merged(lower: Plain, upper: Plain) -> Plain:
    """JSON over JSON: objects merge, everything else replaces."""
    out = dict(lower)
    for name, value in upper.items():
        beneath = out.get(name)
        out[name] = merged(beneath, value) if isinstance(value, dict) and isinstance(beneath, dict) else value
    return out


def walk(overlay: Plain, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its path; an empty object is a value."""
    for name, value in overlay.items():
        here = f"{path}.{name}" if path else name
        if isinstance(value, dict) and value:
            yield from walk(value, here)
        else:
            yield here, value
