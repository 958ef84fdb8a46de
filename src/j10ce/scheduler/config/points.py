"""Which plugins are asked where: what a profile enables and disables, on top of the defaults.

The defaults stand in `multiPoint`: a plugin there is asked wherever it has an answer. A point that names a plugin
has the last word about it, and those that it names in addition come last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from j10ce.errors import Finding
from j10ce.model.text.near import one_of
from j10ce.scheduler.config.names import DEFAULTS, SILENT
from j10ce.scheduler.config.sections import PluginSet, PluginsSection
from j10ce.scheduler.cycle.framework import (
    Binder,
    Filter,
    Permit,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Reserve,
    Score,
)

ALL: Final = "*"
MULTI_POINT: Final = "multiPoint"
MOST_WEIGHT: Final = 10_000
POINTS: Final[Mapping[str, Any]] = {
    "preEnqueue": PreEnqueue, "queueSort": QueueSort, "preFilter": PreFilter, "filter": Filter,
    "postFilter": PostFilter, "preScore": PreScore, "score": Score, "reserve": Reserve, "permit": Permit,
    "preBind": PreBind, "bind": Binder, "postBind": PostBind,
}  # fmt: skip


class Weighted(NamedTuple):
    """`weight` 0: the plugin's own."""

    name: str
    weight: int = 0


def sets(section: PluginsSection) -> dict[str, PluginSet]:
    """By point, and multiPoint."""
    return {
        "preEnqueue": section.pre_enqueue, "queueSort": section.queue_sort, "preFilter": section.pre_filter,
        "filter": section.filter, "postFilter": section.post_filter, "preScore": section.pre_score,
        "score": section.score, "reserve": section.reserve, "permit": section.permit, "preBind": section.pre_bind,
        "bind": section.bind, "postBind": section.post_bind, MULTI_POINT: section.multi_point,
    }  # fmt: skip


def names(section: PluginsSection) -> list[str]:
    """Every plugin that is enabled anywhere, each once; those without effect left out."""
    every = [w.name for w in everywhere(section.multi_point)]
    every += [e.name for each in sets(section).values() for e in each.enabled]
    return [name for name in dict.fromkeys(every) if name not in SILENT]


def everywhere(multi_point: PluginSet) -> list[Weighted]:
    """Defaults that are not disabled, in their places, then the others."""
    off = {d.name for d in multi_point.disabled}
    own = {e.name: Weighted(e.name, e.weight) for e in multi_point.enabled}
    kept = [] if ALL in off else [name for name in DEFAULTS if name not in off]
    return [*(own.pop(name, Weighted(name)) for name in kept), *own.values()]


def asked(section: PluginsSection, made: Mapping[str, object]) -> dict[str, list[Weighted]]:
    """By point, in order: what stands in both, then what stands in multiPoint, then the rest."""
    general = everywhere(section.multi_point)
    by_point: dict[str, list[Weighted]] = {}
    for point, each in sets(section).items():
        if point == MULTI_POINT:
            continue
        off = {d.name for d in each.disabled}
        own = [Weighted(e.name, e.weight) for e in each.enabled]
        said = {w.name for w in own}
        everywhere_else = [
            w for w in general if w.name in made and isinstance(made[w.name], POINTS[point]) and not off & {ALL, w.name}
        ]
        both = {w.name for w in everywhere_else} & said
        order = (
            *(w for w in own if w.name in both),
            *(w for w in everywhere_else if w.name not in said),
            *(w for w in own if w.name not in both),
        )
        by_point[point] = [w for w in order if w.name in made]
    return by_point


def check(section: PluginsSection, path: str, known: Mapping[str, object]) -> list[Finding]:
    """Names that nobody has, that stand twice, and weights that are no weights."""
    findings = list[Finding]()
    for point, each in sets(section).items():
        there = set[str]()
        for n, e in enumerate(each.enabled):
            where = f"{path}.{point}.enabled[{n}]"
            if e.name in there:
                findings.append(Finding(f"{where}.name", e.name, "enabled twice", "name it once"))
            there.add(e.name)
            if not 0 <= e.weight <= MOST_WEIGHT:
                hint = f"use 1 to {MOST_WEIGHT}; 0 is the plugin's own"
                findings.append(Finding(f"{where}.weight", e.weight, "no weight", hint))
            findings += _unknown(f"{where}.name", e.name, known)
        for n, d in enumerate(each.disabled):
            if d.name != ALL:
                findings += _unknown(f"{path}.{point}.disabled[{n}].name", d.name, known)
    return findings


def check_points(section: PluginsSection, path: str, made: Mapping[str, object]) -> list[Finding]:
    """Plugins that are enabled where they have no answer."""
    return [
        Finding(f"{path}.{point}.enabled[{n}].name", e.name, f"it is no {point} plugin", _answers(made[e.name]))
        for point, each in sets(section).items()
        if point != MULTI_POINT
        for n, e in enumerate(each.enabled)
        if e.name in made and not isinstance(made[e.name], POINTS[point])
    ]


def _answers(plugin: object) -> str:
    able = [point for point, protocol in POINTS.items() if isinstance(plugin, protocol)]
    return f"it answers at {', '.join(able)}" if able else "it answers at no point"


def _unknown(path: str, name: str, known: Mapping[str, object]) -> list[Finding]:
    if name in known or name in SILENT:
        return []
    return [Finding(path, name, "no such plugin", f"{one_of(name, known)}, or install what brings it")]
