"""The files of a node in our own words: what its links carry is a NodeStrategy, and what is not said by one is named.

There a class has its rates together, all pods of it; nothing here has, so they are reported. Pods say the same in their
annotations as the file says of them, and agents read those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import UNSET

from j10ce.dialects.terway.files import BITS, GLOBAL, PODS, NodeRates, node_rates, pods
from j10ce.errors import Finding
from j10ce.model.kinds import Meta, NodeStrategy, NodeStrategySpec
from j10ce.model.parts.devices import LinkOverlay, LinksSection
from j10ce.model.quantity import Quantity
from j10ce.model.resource import spell

NAME: Final = "terway-links"
WHOLE: Final = "hw"
PRIORITY: Final = -300_000  # below what somebody writes, and below what a cluster's configuration becomes
WAYS: Final = {"tx": "egress", "rx": "ingress"}


class FromFiles(NamedTuple):
    objects: tuple[NodeStrategy, ...] = ()
    findings: tuple[Finding, ...] = ()  # what is wrong, and therefore left out
    notes: tuple[Finding, ...] = ()  # what became of the rest


def from_files(texts: Mapping[str, str], links: Sequence[str]) -> FromFiles:
    """`texts`: by the file's name; `links`: those that carry what is said of the whole node."""
    said = node_rates(texts.get(GLOBAL, ""))
    listed = pods(texts[PODS]) if PODS in texts else None
    objects = _strategies(said, links)
    notes = [*_of_links(said, links), *_of_classes(said)]
    if listed is not None:
        hint = "agents with --dialect terway read class and rates from the annotations of pods"
        notes.append(Finding(PODS, f"{len(listed.pods)} pods", "no object is made of them", hint))
    if objects:
        hint = "give it a nodeSelector where the file is one node's"
        notes.append(Finding(f"NodeStrategy/{NAME}", None, "selects every node", hint))
    return FromFiles(objects, (*said.findings, *(listed.findings if listed else ())), tuple(notes))


def _strategies(said: NodeRates, links: Sequence[str]) -> tuple[NodeStrategy, ...]:
    rates = {way: Quantity(of.most) if (of := said.rates.get((WHOLE, way))) and of.most else UNSET for way in WAYS}
    if not links or all(rate is UNSET for rate in rates.values()):
        return ()
    section = LinksSection(links={name: LinkOverlay(egress=rates["tx"], ingress=rates["rx"]) for name in links})
    return (NodeStrategy(metadata=Meta(name=NAME), spec=NodeStrategySpec(network=section, priority=PRIORITY)),)


def _of_links(said: NodeRates, links: Sequence[str]) -> Iterator[Finding]:
    for (of, way), rates in said.rates.items():
        if of != WHOLE:
            continue
        path = f"{GLOBAL}.{of}_{way}_bps"
        if rates.least:
            yield Finding(f"{path}_min", rates.least // BITS, "not heeded", "a link has no minimum")
        if rates.most and not links:
            hint = "the file names no link: say --link eth0, for each that carries so much"
            yield Finding(f"{path}_max", rates.most // BITS, "not heeded", hint)
        for name in links if rates.most else ():
            made = f"network.links.{name}.{WAYS[way]}: {spell('network', rates.most)}"
            yield Finding(f"{path}_max", rates.most // BITS, f"is {made}", "bytes a second there, bits here")


def _of_classes(said: NodeRates) -> Iterator[Finding]:
    for (of, way), rates in said.rates.items():
        for word, rate, field in (("min", rates.least, "floor"), ("max", rates.most, "ceiling")):
            if of != WHOLE and rate:
                ours = (
                    f"network.{WAYS[way]}.{field} of a profile is each workload's own; this is {spell('network', rate)}"
                )
                yield Finding(f"{GLOBAL}.{of}_{way}_bps_{word}", rate // BITS, "not heeded: a class together", ours)
