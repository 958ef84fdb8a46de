"""One profile: its plugins, made with their arguments, and where each is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from j10ce.errors import Finding, Invalid
from j10ce.model import schema
from j10ce.model.text.near import one_of
from j10ce.scheduler.config.contradictions import contradictions
from j10ce.scheduler.config.names import SILENT
from j10ce.scheduler.config.points import Weighted, asked, check, check_points, names
from j10ce.scheduler.config.registry import BUILTIN, Registered
from j10ce.scheduler.config.sections import PluginArguments, ProfileSection
from j10ce.scheduler.cycle.profile import Profile, WeightedScore


class ProfileRead(NamedTuple):
    """None: it has findings."""

    profile: Profile | None
    findings: list[Finding]


def stock(name: str) -> Profile:
    """What Kubernetes does without a configuration."""
    read = read_profile(ProfileSection(scheduler_name=name), "", BUILTIN)
    if read.profile is None:
        raise ValueError("the defaults are no profile")
    return read.profile


def read_profile(section: ProfileSection, path: str, known: Mapping[str, Registered]) -> ProfileRead:
    findings = check(section.plugins, f"{path}.plugins", known)
    if not section.scheduler_name:
        findings.append(Finding(f"{path}.schedulerName", "", "empty", "write a name"))
    args, wrong = _arguments(section.plugin_config, f"{path}.pluginConfig", known)
    made = {n: _made(known[n], args.get(n)) for n in names(section.plugins) if n in known}
    findings += [*wrong, *check_points(section.plugins, f"{path}.plugins", made)]
    points = asked(section.plugins, made)
    sorts = [w.name for w in points["queueSort"]]
    if len(sorts) != 1:
        hint = 'enable exactly one; to replace the default, disable "*" beside it'
        problem = f"{len(sorts)} of them: {', '.join(sorts)}" if sorts else "none"
        findings.append(Finding(f"{path}.plugins.queueSort", None, problem, hint))
    if findings:
        return ProfileRead(None, findings)
    return ProfileRead(_assembled(section.scheduler_name, points, made, known), [])


def _assembled(
    name: str, points: Mapping[str, list[Weighted]], made: Mapping[str, object], known: Mapping[str, Registered]
) -> Profile:
    """Each stands where it was found to have an answer."""
    at: dict[str, Any] = {point: tuple(made[w.name] for w in there) for point, there in points.items()}
    scores = tuple(
        WeightedScore(plugin, float(w.weight or known[w.name].weight))
        for plugin, w in zip(at["score"], points["score"], strict=True)
    )
    return Profile(
        name,
        at["queueSort"][0],
        at["preEnqueue"],
        at["preFilter"],
        at["filter"],
        at["postFilter"],
        at["preScore"],
        scores,
        at["reserve"],
        at["permit"],
        at["preBind"],
        at["bind"],
        at["postBind"],
    )


def _arguments(
    sections: tuple[PluginArguments, ...], path: str, known: Mapping[str, Registered]
) -> tuple[dict[str, Struct], list[Finding]]:
    findings, args = list[Finding](), dict[str, Struct]()
    for n, section in enumerate(sections):
        where = f"{path}[{n}]"
        registered = known.get(section.name)
        if section.name in args:
            findings.append(Finding(f"{where}.name", section.name, "configured twice", "write one section"))
        elif registered is None:
            if section.name not in SILENT:
                hint = f"{one_of(section.name, known)}, or install what brings it"
                findings.append(Finding(f"{where}.name", section.name, "no such plugin", hint))
        elif registered.args is None:
            if section.args:
                findings.append(Finding(f"{where}.args", section.args, "it takes no arguments", "leave them out"))
        else:
            value, wrong = read_struct(section.args, registered.args, f"{where}.args")
            findings += wrong
            if value is not None:
                args[section.name] = value
                findings += contradictions(value, f"{where}.args")
    return args, findings


def _made(registered: Registered, args: Struct | None) -> object:
    if registered.args is None:
        return registered.make()
    return registered.make(args if args is not None else registered.args())


def read_struct(raw: object, into: type[Any], path: str) -> tuple[Any, list[Finding]]:
    try:
        value, findings = schema.salvage(raw, into)
    except Invalid as e:
        value, findings = None, [*e.findings]
    return value, [f._replace(path=".".join(p for p in (path, f.path.lstrip(".")) if p)) for f in findings]
