"""Configurations in a few words, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from j10ce.errors import Invalid
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.config.registry import Registered
from j10ce.scheduler.config.sections import API_VERSIONS, KIND
from j10ce.scheduler.config.settings import configured
from j10ce.scheduler.cycle.profile import Profile

HEAD = {"apiVersion": API_VERSIONS[0], "kind": KIND}


class Mine:
    """Answers at three points."""

    name = "Mine"
    moves = False

    def queue_key(self, pod: PodFacts, now: float, /) -> int:
        return 0

    def pre_bind(self, pod: PodFacts, node: str, now: float, /) -> None: ...

    def post_bind(self, pod: PodFacts, node: str, now: float, /) -> None: ...

    def pre_enqueue(self, pod: PodFacts, now: float, /) -> str:
        return ""


OTHERS = {"Mine": Registered(Mine)}


def profile_of(plugins: Any = None, *args: dict[str, Any], name: str = "ours") -> Profile:
    section = {"schedulerName": name, "plugins": plugins or {}, "pluginConfig": list(args)}
    return configured(HEAD | {"profiles": [section]}, OTHERS).profiles[0]


def names(profile: Profile) -> dict[str, list[str]]:
    fields = profile._asdict() | {"scores": [s.plugin for s in profile.scores]}
    return {at: [p.name for p in plugins] for at, plugins in fields.items() if isinstance(plugins, list | tuple)}


def enable(*plugins: str, disabled: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"enabled": [{"name": p} for p in plugins], "disabled": [{"name": p} for p in disabled]}


def findings(raw: object) -> dict[str, str]:
    with pytest.raises(Invalid) as raised:
        configured(raw, OTHERS)
    return {f.path: f.advice for f in raised.value.findings}


def wrong(**section: Any) -> dict[str, str]:
    return findings(HEAD | {"profiles": [section]})
