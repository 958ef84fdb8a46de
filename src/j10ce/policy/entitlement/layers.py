"""What is said of a workload, layer on layer: its profile, the node's strategy for that profile, itself.

A layer says only what it changes. What makes no sense in the workload's tier, or is not for its namespace, is left as
it was, with a note; each change that counts is a source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import UNSET
from msgspec.structs import fields, replace

from j10ce.errors import Finding
from j10ce.model.kinds import (
    CacheSection,
    CpuSection,
    IoSection,
    MemorySection,
    NetworkSection,
    QoSProfileSpec,
    Tier,
)
from j10ce.model.parts.sections import ProfileOverlay
from j10ce.model.parts.strategy import BurstSection
from j10ce.model.parts.strict import Strict
from j10ce.model.workload import Note, Source, Workload
from j10ce.policy.choose import Choice
from j10ce.policy.profiles import BURSTS, trusted
from j10ce.policy.strategy import EffectiveStrategy
from j10ce.policy.validation.sections import OWN_CPUS, sections

S = TypeVar("S", bound=Strict)
STRATEGY: Final = "NodeStrategy"  # where nobody knows which one said it
SILENT: Final = ProfileOverlay()
WHOLE: Final = 100  # percent
UNSAID: Final = BurstSection()
SECTIONS: Final = ("cpu", "memory", "cache", "network", "io")
FLOORS: Final = frozenset({"network.floor", "network.egress.floor", "network.ingress.floor"})


class LayerField(NamedTuple):
    """One field of a layer."""

    section: str  # cpu, memory, cache, network, io
    name: str  # as the struct has it: `core_sched`, `reclaim.enabled`
    path: str  # as people write it: `cpu.coreSched`
    value: Any


class Layers(NamedTuple):
    """What counts, who said so, and what does not count."""

    cpu: CpuSection = CpuSection()
    memory: MemorySection = MemorySection()
    cache: CacheSection = CacheSection()
    network: NetworkSection = NetworkSection()
    io: IoSection = IoSection()
    sources: tuple[Source, ...] = ()
    notes: tuple[Note, ...] = ()
    switched_on: bool = False  # the node's strategy speaks of it, though no profile chooses it


def layers(w: Workload, choice: Choice, of_node: EffectiveStrategy) -> Layers:
    """Profile, what the node's strategies say of it, and what the workload says itself."""
    base, profile, overlays = Layers(), choice.profile, of_node.strategy.profiles
    if profile is not None:
        spec = profile.spec
        base = Layers(spec.cpu, spec.memory, spec.cache, spec.network, spec.io)
        if overlay := overlays.get(profile.metadata.name):
            why = f"for profile {profile.metadata.name}"
            base = _laid(base, said(overlay), choice.tier, _who(of_node, profile.metadata.name), why)
    elif name := switched_on(w, choice, overlays):
        why = f"for {name}, as which it counts without a label"
        base = _laid(base, said(overlays[name]), choice.tier, _who(of_node, name), why)._replace(switched_on=True)
    own = w.overrides
    if own.sections != SILENT and (asked := said(own.sections)):
        mine = f"Workload/{w.namespace}/{w.name}"
        allowed = [f for f in asked if not (_privileged(f) or _widens(f, base.cache)) or trusted(w.namespace_labels)]
        text = f"namespace {w.namespace!r} may not choose it"
        refused = [
            Note("Note", own.origins.get(f.path, mine), f"{_spelled(f)}: {text}") for f in asked if f not in allowed
        ]
        base = _laid(base, allowed, choice.tier, lambda path: own.origins.get(path, mine), "of this workload alone")
        base = base._replace(notes=(*base.notes, *refused))
    if own.burst != UNSAID:
        base = _bursting(base, w, choice.tier)
    return base._replace(notes=(*base.notes, *own.notes)) if own.notes else base


def _who(of_node: EffectiveStrategy, profile: str) -> Callable[[str], str]:
    """The strategy that said a field of a profile, by its path there."""
    return lambda path: of_node.origins.get(f"profiles.{profile}.{path}", STRATEGY)


def _bursting(base: Layers, w: Workload, tier: Tier) -> Layers:
    """What is said of its burst goes over the node's strategy; whoever decides on bursts looks at it there."""
    burst = w.overrides.burst
    own = [(f.encode_name, value) for f in fields(burst) if (value := getattr(burst, f.name)) is not UNSET]
    said_by = {name: w.overrides.origins.get(f"burst.{name}", f"Workload/{w.namespace}/{w.name}") for name, _ in own}
    if tier not in BURSTS:
        text = f"tier {tier.value} has no burst of its own; use tier sensitive or standard"
        return base._replace(notes=(*base.notes, *(Note("Note", who, text) for who in dict.fromkeys(said_by.values()))))
    why = "of this workload alone"
    sources = (Source(f"burst.{name}", said_by[name], f"burst.{name} {value} {why}") for name, value in own)
    return base._replace(sources=(*base.sources, *sources))


def switched_on(w: Workload, choice: Choice, overlays: Mapping[str, ProfileOverlay]) -> str:
    """The profile whose fields in the node's strategy are for it, though no profile chooses it; empty: none."""
    if choice.profile is not None or choice.ignored:
        return ""
    return next((name for name in w.overrides.switched_on if overlays.get(name, SILENT) != SILENT), "")


def said(overlay: ProfileOverlay) -> list[LayerField]:
    """Every field that a layer sets."""
    return [field for section in SECTIONS for field in _said(section, getattr(overlay, section), section)]


def _said(section: str, layer: Strict, path: str, inside: str = "") -> Iterator[LayerField]:
    for name, key in zip(layer.__struct_fields__, layer.__struct_encode_fields__, strict=True):
        value, here = getattr(layer, name), f"{path}.{key}"
        if isinstance(value, Strict):
            yield from _said(section, value, here, f"{inside}{name}.")
        elif value is not UNSET:
            yield LayerField(section, f"{inside}{name}", here, value)


def _privileged(field: LayerField) -> bool:
    """CPUs or bandwidth of its own cost others theirs, and who is spared when memory runs out is spared at theirs."""
    match field.path:
        case "cpu.latency":
            return bool(field.value == "realtime")
        case "cpu.pinning":
            return field.value in OWN_CPUS
        case "memory.oomPriority" | "memory.kernelPriority":
            return bool(field.value > 0)
        case "memory.watermarkAdjust":
            return bool(field.value < 0)
        case path if path in FLOORS:
            return True
        case _:
            return False


def _widens(field: LayerField, cache: CacheSection) -> bool:
    """More of the cache, or of the bandwidth to memory, than its class may fill: others would have the less."""
    match field.path:
        case "cache.llcStartPercent":
            return bool(field.value < (cache.llc_start_percent or 0))
        case "cache.llcEndPercent":
            return bool(field.value > (cache.llc_end_percent or WHOLE))
        case "cache.memoryBandwidthPercent":
            return bool(field.value > (cache.memory_bandwidth_percent or WHOLE))
        case _:
            return False


def _laid(base: Layers, asked: list[LayerField], tier: Tier, who: Callable[[str], str], why: str) -> Layers:
    """Fields that make no sense with the others are left out, one round after the other, until all that stay do."""
    notes: list[Note] = []
    known = {(f.path, f.problem) for f in _findings(base, tier)}
    while wrong := [f for f in _findings(_over(base, asked), tier) if (f.path, f.problem) not in known]:
        out = [field for field in asked if field in _blamed(wrong[0], asked)]
        notes += [Note("Note", who(f.path), f"{_spelled(f)}: {wrong[0].problem}; {wrong[0].hint}") for f in out]
        asked = [field for field in asked if field not in out]
    merged = _over(base, asked)
    sources = (*base.sources, *(Source(f.path, who(f.path), f"{_spelled(f)} {why}") for f in asked))
    return merged._replace(sources=sources, notes=(*base.notes, *notes))


def _over(base: Layers, asked: list[LayerField]) -> Layers:
    def of(section: str) -> dict[str, Any]:
        return {field.name: field.value for field in asked if field.section == section}

    return base._replace(
        cpu=_replaced(base.cpu, of("cpu")),
        memory=_replaced(base.memory, of("memory")),
        cache=_replaced(base.cache, of("cache")),
        network=_replaced(base.network, of("network")),
        io=_replaced(base.io, of("io")),
    )


def _replaced(layer: S, values: Mapping[str, Any]) -> S:
    """With the values in it, or in the sections inside it (`reclaim.enabled`)."""
    own = {name: value for name, value in values.items() if "." not in name}
    for section in dict.fromkeys(name.partition(".")[0] for name in values if "." in name):
        inside = {name.partition(".")[2]: v for name, v in values.items() if name.startswith(f"{section}.")}
        own[section] = _replaced(getattr(layer, section), inside)
    return replace(layer, **own)


def _findings(merged: Layers, tier: Tier) -> Iterator[Finding]:
    said = {section: getattr(merged, section) for section in SECTIONS}
    return sections(QoSProfileSpec(tier=tier, **said))


def _blamed(finding: Finding, asked: list[LayerField]) -> list[LayerField]:
    """The field that it names; where that is none of the layer's, all that the layer says about the same resource."""
    _, section, path = finding.path.split(".", 2)
    return [f for f in asked if f.path == f"{section}.{path}"] or [f for f in asked if f.section == section] or asked


def _spelled(field: LayerField) -> str:
    value = field.value
    return f"{field.path} {str(value).lower() if isinstance(value, bool) else value}"
