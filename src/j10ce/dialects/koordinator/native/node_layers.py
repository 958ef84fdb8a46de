"""What single nodes say about themselves, as layers above the ConfigMap's: one for all nodes that come to the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.annotations.node import read_node
from j10ce.dialects.koordinator.config.keys import KeyConfig
from j10ce.dialects.koordinator.config.layers import OF_NODE, RATIO_LABELS, NodeWords, effective
from j10ce.dialects.koordinator.config.ratios import CpuNormalization
from j10ce.dialects.koordinator.native.sections import normalization, reserving
from j10ce.dialects.koordinator.native.stacking import NativeLayer
from j10ce.dialects.koordinator.native.translate import Translated, fitted, translated
from j10ce.errors import Finding
from j10ce.model.kinds import Requirement, Selector
from j10ce.model.parts.strategy import Strategy, SystemCpusSection
from j10ce.model.schema import plain
from j10ce.policy.document.document import HOSTNAME_LABEL

COLOCATION: Final = "colocation-config"
NORMALIZATION: Final = "cpu-normalization-config"
MOST_NAMES: Final = 1000  # of nodes in one selector
# By key, the labels and annotations that make a node speak for itself.
WORDS: Final[Mapping[str, frozenset[str]]] = {
    COLOCATION: frozenset({names.COLOCATION_STRATEGY, names.RESERVATION, *RATIO_LABELS}),
    NORMALIZATION: frozenset({names.NORMALIZATION_ENABLED, names.NORMALIZATION_RATIO, names.CPU_BASIC_INFO}),
}
SYSTEM_CPUS: Final = "system-qos-resource"  # of the annotation alone: no key of the ConfigMap says it
ALONE: Final = frozenset({names.SYSTEM_QOS})
# Annotations that no field of a strategy can say.
UNHEEDED: Final = (names.NETWORK_BANDWIDTH,)


class KnownNode(NamedTuple):
    name: str
    words: NodeWords


class OwnLayers(NamedTuple):
    layers: list[NativeLayer]
    findings: list[Finding]


def own_layers(key: str, config: KeyConfig | None, nodes: Iterable[KnownNode], priority: int) -> OwnLayers:
    groups: dict[str, tuple[Strategy, list[str]]] = {}  # by what they say
    findings: list[Finding] = []
    for node in nodes:
        if key in OF_NODE and _speaks(key, node.words):
            made, problems = _translated(key, config, node.words)
            findings += [f._replace(path=f"node {node.name}: {f.path}") for f in (*problems, *made.findings)]
            if config is not None or made.strategy != Strategy():
                groups.setdefault(_digest(made.strategy), (made.strategy, []))[1].append(node.name)
    return OwnLayers(_layers(groups, priority), findings)


def system_cpus(nodes: Iterable[KnownNode], priority: int) -> OwnLayers:
    """The CPUs of class SYSTEM, which nodes say for themselves alone."""
    groups: dict[str, tuple[Strategy, list[str]]] = {}
    findings: list[Finding] = []
    for node in nodes:
        says, wrong = read_node({k: v for k, v in node.words.annotations.items() if k in ALONE})
        if says.system is not None and says.system.cpuset:
            section = SystemCpusSection(cpus=says.system.cpuset, exclusive=says.system.cpuset_exclusive)
            made = fitted(Strategy(system_cpus=section))
            wrong += made.findings
            if not made.findings:
                groups.setdefault(_digest(made.strategy), (made.strategy, []))[1].append(node.name)
        findings += [f._replace(path=f"node {node.name}: {f.path}") for f in wrong]
    return OwnLayers(_layers(groups, priority), findings)


def _layers(groups: Mapping[str, tuple[Strategy, list[str]]], priority: int) -> list[NativeLayer]:
    return [
        NativeLayer(f"nodes-{digest}", selector, priority, strategy)
        for digest, (strategy, group) in sorted(groups.items())
        for selector in _selectors(sorted(group))
    ]


def not_heeded(nodes: Iterable[KnownNode]) -> Iterator[Finding]:
    for node in nodes:
        for key in UNHEEDED:
            if key in node.words.annotations:
                yield Finding(f"node {node.name}: {key}", None, "not heeded", "nothing here acts on it")


def _speaks(key: str, words: NodeWords) -> bool:
    return not WORDS.get(key, frozenset()).isdisjoint({*words.labels, *words.annotations})


def _translated(key: str, config: KeyConfig | None, words: NodeWords) -> tuple[Translated, list[Finding]]:
    held = effective(key, config, words)
    says, wrong = read_node({k: v for k, v in words.annotations.items() if k in WORDS[key]})
    problems = [*held.findings, *wrong]
    if config is None and held.layers["enable"].kind == "default":  # neither the cluster nor the node switches it
        made = Translated(Strategy())
    elif isinstance(held.strategy, CpuNormalization):
        return fitted(normalization(held.strategy, says)), problems
    else:
        made = translated(key, held.plain)
    if key != COLOCATION:
        return made, problems
    kept = fitted(reserving(made.strategy, says))
    return Translated(kept.strategy, (*made.findings, *kept.findings)), problems


def _digest(strategy: Strategy) -> str:
    """Layers are called by what they say, so that a node that joins or leaves renames nobody."""
    return hashlib.sha256(msgspec.json.encode(plain(strategy), order="sorted")).hexdigest()[:8]


def _selectors(group: list[str]) -> Iterator[Selector]:
    for n in range(0, len(group), MOST_NAMES):
        some = tuple(group[n : n + MOST_NAMES])
        yield Selector(match_expressions=(Requirement(key=HOSTNAME_LABEL, operator="In", values=some),))
