"""What holds on one node, and which layer said so.

defaults ← cluster ← first node entry that matches ← annotation of the node ← labels of the node
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Final, Literal, NamedTuple

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.config.colocation import Colocation
from j10ce.dialects.koordinator.config.fields import Plain
from j10ce.dialects.koordinator.config.keys import (
    OPAQUE,
    SHAPES,
    KeyConfig,
    KeyShape,
    known_fields,
    merged,
    overlay_findings,
    walk,
)
from j10ce.dialects.koordinator.config.qos_rules import quantity
from j10ce.dialects.koordinator.reading import bearable, checked, read_text
from j10ce.errors import Finding
from j10ce.model.parts.strict import Strict
from j10ce.policy.select import Labels, matches

RATIO_LABELS: Final = {
    names.CPU_RECLAIM_LABEL: "cpuReclaimThresholdPercent",
    names.MEMORY_RECLAIM_LABEL: "memoryReclaimThresholdPercent",
    names.MID_STATIC_CPU_LABEL: "midStaticCPUReservedPercent",
    names.MID_STATIC_MEMORY_LABEL: "midStaticMemoryReservedPercent",
}
LONGEST_RATIO: Final = 20  # characters


class Layer(NamedTuple):
    kind: Literal["default", "cluster", "node entry", "annotation", "label"]
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


class Overlay(NamedTuple):
    layer: Layer
    fields: Plain


class Layered(NamedTuple):
    """A strategy, and the layer of every field that is in it."""

    strategy: Strict | None  # None: opaque, a third party's
    plain: Plain
    layers: Mapping[str, Layer]
    findings: tuple[Finding, ...] = ()


class NodeWords(NamedTuple):
    """What a node says about itself."""

    labels: Labels
    annotations: Mapping[str, str]


def effective(key: str, config: KeyConfig | None, node: NodeWords) -> Layered:
    """The strategy of a key on a node; a layer of the node that is wrong is reported and left out."""
    shape = SHAPES.get(key, OPAQUE)
    whole, layers = shape.defaults, {path: Layer("default") for path, _ in walk(shape.defaults)}
    findings: list[Finding] = []
    for overlay in _configured(config, node.labels):
        whole = _laid(whole, layers, overlay)
    own = OF_NODE.get(key)
    for overlay, problems in own(node, shape) if own else ():
        findings += problems
        if not all(map(bearable, problems)):
            continue
        wrong = overlay_findings(shape, overlay.fields, whole, str(overlay.layer))
        findings += wrong
        if not wrong:
            whole = _laid(whole, layers, overlay)
    strategy = checked(whole, shape.struct, key)[0] if shape.struct is not None else None
    return Layered(strategy, whole, layers, tuple(findings))


def _configured(config: KeyConfig | None, labels: Labels) -> Iterator[Overlay]:
    if config is None:
        return
    yield Overlay(Layer("cluster"), config.cluster)
    entry = next((e for e in config.entries if matches(e.selector, labels)), None)
    if entry is not None:
        yield Overlay(Layer("node entry", entry.name), entry.overlay)


def _laid(whole: Plain, layers: dict[str, Layer], overlay: Overlay) -> Plain:
    laid = merged(whole, overlay.fields)
    for path, _ in walk(overlay.fields):
        layers[path] = overlay.layer
    held = {path for path, _ in walk(laid)}
    for path in [*layers]:  # what an object replaced, or an empty object made one
        if path not in held:
            del layers[path]
    return laid


NodeOverlays = Iterator[tuple[Overlay, list[Finding]]]


def _colocation(node: NodeWords, shape: KeyShape) -> NodeOverlays:
    text = node.annotations.get(names.COLOCATION_STRATEGY)
    if text is not None:
        path = f"metadata.annotations.{names.COLOCATION_STRATEGY}"
        data, odd = read_text(text, path)
        findings = [*odd] if data is not None else [*odd] or [Finding(path, text, "empty", "write {…}")]
        if data is not None:
            findings += checked(data, Colocation, path)[1]
        fields = known_fields(shape, data) if isinstance(data, dict) else {}
        yield Overlay(Layer("annotation", names.COLOCATION_STRATEGY), fields), findings
    for label, field in RATIO_LABELS.items():
        if label in node.labels:
            percent = _percent(node.labels[label])
            path = f"metadata.labels.{label}"
            wrong = [Finding(path, node.labels[label], "not a ratio", "use a number such as 0.65")]
            yield Overlay(Layer("label", label), {field: percent}), wrong if percent is None else []


def _percent(text: str) -> int | None:
    """A ratio in hundredths, without what is beyond."""
    if len(text) > LONGEST_RATIO or not text.isascii() or not text.replace(".", "", 1).isdecimal():
        return None
    return int(Fraction(text) * 100)


def _normalization(node: NodeWords, _: KeyShape) -> NodeOverlays:
    label = names.NORMALIZATION_ENABLED
    if label in node.labels:
        value = node.labels[label]
        wrong = [Finding(f"metadata.labels.{label}", value, "not a truth value", 'use "true" or "false"')]
        yield Overlay(Layer("label", label), {"enable": value == "true"}), [] if value in ("true", "false") else wrong


def _system(node: NodeWords, _: KeyShape) -> NodeOverlays:
    key = names.NETWORK_BANDWIDTH
    if key in node.annotations:
        value = node.annotations[key]
        wrong = [Finding(f"metadata.annotations.{key}", value, "not a quantity", "write bits per second, such as 10G")]
        fields = {"totalNetworkBandwidth": value}
        yield Overlay(Layer("annotation", key), fields), [] if quantity(value) is not None else wrong


OF_NODE: Final[Mapping[str, Callable[[NodeWords, KeyShape], NodeOverlays]]] = {
    "colocation-config": _colocation,
    "cpu-normalization-config": _normalization,
    "system-config": _system,
}
