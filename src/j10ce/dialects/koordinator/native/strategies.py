"""From a ConfigMap to NodeStrategies: a cluster's strategy, one per entry, one for nodes that speak for themselves.
What nodes alone can say, the CPUs of class SYSTEM, is beside the keys.

Objects of a key that cannot be read are not made anew: whoever keeps them leaves them as they are, and they are the
last good value. All priorities are below 0, where a strategy that somebody writes stands by default.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import UNSET

from j10ce.dialects.koordinator.config.keys import INLINE, SHAPES, KeyConfig, merged, read_key
from j10ce.dialects.koordinator.native.node_layers import SYSTEM_CPUS, KnownNode, not_heeded, own_layers, system_cpus
from j10ce.dialects.koordinator.native.stacking import NativeLayer, TooTangled, stacked
from j10ce.dialects.koordinator.native.translate import TRANSLATORS, Translated, base, translated
from j10ce.dialects.koordinator.native.unheeded import unheeded
from j10ce.dialects.koordinator.native.words import DIALECT, labels, slug
from j10ce.errors import Finding
from j10ce.model.kinds import Meta, NodeStrategy, NodeStrategySpec, Selector
from j10ce.model.parts.strategy import Strategy
from j10ce.model.text.near import one_of

OF_NODES: Final = -100_000  # priority of what nodes say themselves
OF_ENTRIES: Final = -200_000  # of the first entry; those after it have less
OF_CLUSTER: Final = -300_000
CLUSTER_NAME: Final = "cluster"


class Generated(NamedTuple):
    objects: Mapping[str, tuple[NodeStrategy, ...]]  # by key; one that is missing here could not be read
    findings: tuple[Finding, ...] = ()  # what is wrong, and therefore not in force
    notes: tuple[Finding, ...] = ()  # what is right, and has no equivalent

    def all(self) -> list[NodeStrategy]:
        return [strategy for made in self.objects.values() for strategy in made]


class _Made(NamedTuple):
    objects: tuple[NodeStrategy, ...] | None
    findings: list[Finding]
    notes: list[Finding]


def generated(data: Mapping[str, str], nodes: Sequence[KnownNode] = (), extensions: Collection[str] = ()) -> Generated:
    """All objects of a ConfigMap on these nodes."""
    unknown = [Finding(key, None, "unknown key", one_of(key, SHAPES)) for key in data if key not in SHAPES]
    made = {key: _key(key, data.get(key), nodes) for key in SHAPES}
    made[SYSTEM_CPUS] = _annotated(nodes)
    findings = [f for f in unknown if f.path not in extensions] + [f for m in made.values() for f in m.findings]
    notes = [f for m in made.values() for f in m.notes] + [*not_heeded(nodes)]
    objects = {key: m.objects for key, m in made.items() if m.objects is not None}
    return Generated(objects, tuple(findings), tuple(dict.fromkeys(notes)))


def _key(key: str, text: str | None, nodes: Iterable[KnownNode]) -> _Made:
    shape, findings = SHAPES[key], list[Finding]()
    config: KeyConfig | None = None
    if text is not None:
        config, findings = read_key(key, text, shape)
        if config is None:
            return _Made(None, findings, [])
    own = own_layers(key, config, nodes, OF_NODES) if key in TRANSLATORS else None
    below, left_out = _configured(key, config) if config is not None else ([], [])
    layers = [*(own.layers if own else ()), *below]
    findings += own.findings if own else []
    where = key if shape.cluster == INLINE else f"{key}.{shape.cluster}"
    notes = [*left_out, *(unheeded(key, where, config, shape.entries) if config is not None else ())]
    try:
        return _Made(_objects(key, stacked(layers)), findings, notes)
    except TooTangled:
        hint = "let one label have different values in each of them"
        return _Made(None, [*findings, Finding(key, None, "entries overlap in too many ways", hint)], notes)


def _annotated(nodes: Iterable[KnownNode]) -> _Made:
    own = system_cpus(nodes, OF_NODES)
    return _Made(_objects(SYSTEM_CPUS, stacked(own.layers)), own.findings, [])


def _configured(key: str, config: KeyConfig) -> tuple[list[NativeLayer], list[Finding]]:
    """Entries as they are listed, then the cluster; and what of them is out of our ranges."""
    cluster = merged(base(key), config.cluster)
    whole = translated(key, cluster)
    layers, findings = list[NativeLayer](), _reported(key, whole)
    for n, entry in enumerate(config.entries):
        made = translated(key, merged(cluster, entry.overlay))
        findings += _reported(f"{key}, entry {entry.name}", made)
        layers.append(NativeLayer(slug(entry.name), entry.selector, OF_ENTRIES - n, made.strategy))
    return [*layers, NativeLayer(CLUSTER_NAME, Selector(), OF_CLUSTER, whole.strategy)], findings


def _reported(where: str, made: Translated) -> list[Finding]:
    return [finding._replace(path=f"{where}: {finding.path}") for finding in made.findings]


def _objects(key: str, layers: Iterable[NativeLayer]) -> tuple[NodeStrategy, ...]:
    taken: set[str] = set()
    return tuple(_object(key, layer, taken) for layer in layers)


def _object(key: str, layer: NativeLayer, taken: set[str]) -> NodeStrategy:
    wanted = f"{DIALECT}-{key.removesuffix('-config')}-{layer.name}"
    name, n = wanted, 2
    while name in taken:  # entries may share a name
        name, n = f"{wanted}-{n}", n + 1
    taken.add(name)
    said = {field: getattr(layer.strategy, field) for field in Strategy.__struct_fields__}
    selector = UNSET if layer.selector == Selector() else layer.selector
    return NodeStrategy(
        metadata=Meta(name=name, labels=labels(key)),
        spec=NodeStrategySpec(**said, node_selector=selector, priority=layer.priority),
    )
