"""Which controllers decide on this host: those that are built in and those of plugins, as the configuration says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from j10ce.agent.config import AgentConfig
from j10ce.agent.plugins.installed import installed
from j10ce.agent.plugins.process import PluginProcess
from j10ce.agent.ring.contained import Contained
from j10ce.control.builtin import BUILTIN, build
from j10ce.control.controller import Controller, Steady
from j10ce.control.own import own_claim
from j10ce.host import child
from j10ce.model.quantity import Bytes
from j10ce.model.snapshot import Snapshot


class Deciders(NamedTuple):
    guards: list[Contained]
    quick: list[Controller]  # those that decide an arrival
    own: Callable[[Snapshot], Bytes]  # what the agent would keep for itself


class Controllers:
    def __init__(self, plugins: PluginProcess | None, own_cgroup: str) -> None:
        """`own_cgroup`: where the agent is itself; empty where something else looks after it."""
        self._plugins = plugins
        self._own_cgroup = own_cgroup

    def deciders(self, settings: AgentConfig) -> Deciders:
        """Each list has controllers of its own: what those of the whole tree remember must not be mixed with a part."""
        plugins = self._plugins.controllers() if self._plugins else []
        return Deciders(
            [Contained(controller) for controller in (*self._built_in(settings), *plugins)],
            [c for c in self._built_in(settings) if isinstance(c, Steady) and c.steady],
            own_claim(self._built_in(settings)),
        )

    def _built_in(self, settings: AgentConfig) -> list[Controller]:
        sections: dict[str, Any] = {name: raw for name, raw in settings.controllers.items() if name in BUILTIN}
        if self._own_cgroup:
            sections["own"] = {"group": self._own_cgroup, **sections.get("own", {})}
        return [c for c in build(sections) if c.name not in settings.disabled]


def plugin_process(settings: AgentConfig) -> PluginProcess | None:
    names = [name for name in installed() if name not in (*BUILTIN, *settings.disabled)]
    if not names:
        return None
    sections = {name: raw for name, raw in settings.controllers.items() if name in names}
    return PluginProcess(names, child.python("j10ce.agent.plugins.child", msgspec.json.encode(sections).decode()))
