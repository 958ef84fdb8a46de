"""The table of keys: one strategy of theirs as one of ours. What our ranges do not allow is left out, and reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from j10ce.dialects.koordinator.config.fields import Plain
from j10ce.dialects.koordinator.config.keys import SHAPES
from j10ce.dialects.koordinator.native import host_apps, profiles, sections
from j10ce.dialects.koordinator.reading import checked
from j10ce.errors import Finding
from j10ce.model.parts.strategy import Strategy
from j10ce.model.schema import plain
from j10ce.policy.validation.strategy import strategy_findings

TRANSLATORS: Final[Mapping[str, Callable[[Any], Strategy]]] = {
    "colocation-config": sections.colocation,
    "resource-threshold-config": sections.threshold,
    "resource-qos-config": profiles.resource_qos,
    "cpu-burst-config": sections.burst,
    "system-config": sections.system,
    "host-application-config": host_apps.host_applications,
    "cpu-normalization-config": sections.normalization,
}
NO_RANGE: Final = "not heeded"


class Translated(NamedTuple):
    strategy: Strategy
    findings: tuple[Finding, ...] = ()  # fields of ours that are left out


def base(key: str) -> Plain:
    """What holds where nobody wrote anything, as far as it is to be said."""
    return profiles.SPOKEN_DEFAULTS if key == "resource-qos-config" else SHAPES[key].defaults


def translated(key: str, whole: Plain) -> Translated:
    """`whole` is a strategy with everything below it laid under it. A key without a translator says nothing."""
    struct, translator = SHAPES[key].struct, TRANSLATORS.get(key)
    value = checked(whole, struct, key)[0] if struct is not None else None
    return Translated(Strategy()) if value is None or translator is None else fitted(translator(value))


def fitted(strategy: Strategy) -> Translated:
    """Without what our validation would refuse: half of it would be refused with it."""
    left_out: list[Finding] = []
    while findings := [*strategy_findings(strategy)]:
        first = findings[0]
        left_out.append(first._replace(path=first.path.removeprefix("spec."), problem=f"{NO_RANGE}: {first.problem}"))
        strategy = _without(strategy, first.path.removeprefix("spec."))
    return Translated(strategy, tuple(left_out))


def _without(strategy: Strategy, path: str) -> Strategy:
    """Without a field, or the item of a list that the path leads into; without its section where it is not said."""
    name, bracket, rest = path.partition("[")
    if bracket:
        n, listed = int(rest.partition("]")[0]), strategy.host_applications
        return replace(strategy, host_applications=listed[:n] + listed[n + 1 :])
    whole: Plain = plain(strategy)
    *sections_, last = name.split(".")
    within, above = whole, whole
    for step in sections_:
        above, within = within, within[step]
    if last in within:
        del within[last]
    else:
        del above[sections_[-1]]
    value, findings = checked(whole, Strategy, "")
    if value is None:
        raise ValueError(f"without {path} it is no strategy: {findings}")  # taking a field out leaves one
    return value
