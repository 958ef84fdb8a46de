"""Kubernetes' own words for bandwidth: two annotations of a pod, in bits a second.

They are ceilings. Whatever else shapes a pod by them, such as a CNI plugin, keeps to the same rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from j10ce.errors import Invalid
from j10ce.model.parts.sections import NetworkSection
from j10ce.model.quantity import Quantity
from j10ce.model.resource import spell
from j10ce.model.workload import Note, Overrides, Workload

ANNOTATIONS: Final = {"egress": "kubernetes.io/egress-bandwidth", "ingress": "kubernetes.io/ingress-bandwidth"}
LEAST: Final = 10**3  # as Kubernetes has it: 1k to 1P
MOST: Final = 10**15


class AskedRate(NamedTuple):
    """One annotation: what it comes to, or why it is nothing."""

    annotation: str
    way: str
    rate: Quantity | None
    problem: str = ""


def asked(annotations: Mapping[str, str]) -> Iterator[AskedRate]:
    """Both annotations of a pod, as far as it has them; the unit is whoever's who reads them."""
    for way, name in ANNOTATIONS.items():
        if name in annotations:
            rate, problem = _read(annotations[name])
            yield AskedRate(name, way, rate, problem)


def translate(w: Workload) -> Workload:
    """The workload with these ceilings where nothing more particular is said. Doing it twice changes nothing."""
    return with_ceilings(w, asked(w.annotations), 1)


def with_ceilings(w: Workload, wishes: Iterator[AskedRate], bits: int) -> Workload:
    """`bits`: how many the unit of the annotations is."""
    network, origins = w.overrides.sections.network, dict(w.overrides.origins)
    notes = [*w.overrides.notes]
    for wish in wishes:
        origin = f"annotation {wish.annotation}"
        if wish.rate is None:
            notes.append(Note("Note", origin, f"not heeded: {wish.problem}"))
            continue
        rate = Quantity(wish.rate.amount * bits)
        if bits > 1:
            notes.append(Note("Note", origin, f"{wish.rate} bytes a second, which is {_shown(rate.amount)}"))
        if (path := f"network.{wish.way}.ceiling") not in origins:
            network, origins[path] = _ceiled(network, wish.way, rate), origin
    if network == w.overrides.sections.network and not set(notes) - {*w.overrides.notes}:
        return w
    sections = replace(w.overrides.sections, network=network)
    return replace(w, overrides=_with(w.overrides, sections=sections, origins=origins, notes=_once(notes)))


def _with(overrides: Overrides, **fields: object) -> Overrides:
    return replace(overrides, **fields)


def _once(notes: list[Note]) -> tuple[Note, ...]:
    return tuple(dict.fromkeys(notes))


def _ceiled(network: NetworkSection, way: str, rate: Quantity) -> NetworkSection:
    direction = getattr(network, way)
    if direction.ceiling is not UNSET:
        return network
    return replace(network, **{way: replace(direction, ceiling=rate)})


def _shown(amount: Fraction) -> str:
    return spell("network", float(amount))


def _read(text: str) -> tuple[Quantity | None, str]:
    try:
        rate = Quantity.parse(text)
    except Invalid as e:
        return None, f"{text[:40]!r} is {e.findings[0].problem}"
    if rate.percent or not LEAST <= rate.amount <= MOST:
        return None, f"{text[:40]!r} is not from 1k to 1P"
    return rate, ""
