"""Plugins that other distributions bring, by their entry points. They run in the process itself: trusted code."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Final, NamedTuple

from j10ce.errors import Finding
from j10ce.scheduler.config.names import SILENT
from j10ce.scheduler.config.registry import BUILTIN, Registered, of_class

GROUP: Final = "j10ce.scheduler"


class InstalledPlugins(NamedTuple):
    plugins: dict[str, Registered]
    findings: tuple[Finding, ...]  # about those that cannot be loaded, or have a name that is ours


def installed(points: list[EntryPoint] | None = None) -> InstalledPlugins:
    plugins, findings = dict[str, Registered](), list[Finding]()
    for point in sorted(entry_points(group=GROUP) if points is None else points, key=lambda p: p.name):
        path = f"entry point {point.name} of {point.dist.name if point.dist else point.value}"
        if point.name in BUILTIN or point.name in SILENT or point.name in plugins:
            findings.append(Finding(path, point.value, "another plugin has this name", "uninstall one, or rename it"))
            continue
        try:
            plugins[point.name] = of_class(point.load())
        except Exception as e:  # whatever its module raises
            problem = f"cannot be loaded: {type(e).__name__}: {e}"
            findings.append(Finding(path, point.value, problem, "mend or uninstall it"))
    return InstalledPlugins(plugins, tuple(findings))
