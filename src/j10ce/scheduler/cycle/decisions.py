"""What a step decides. A driver carries it out and reports back; nothing here has happened yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from j10ce.scheduler.book.facts import PodFacts


class Bind(NamedTuple):
    """The book assumes the pod there already: answer by `bound`, or by `bind_failed`."""

    pod: PodFacts
    node: str
    annotations: Mapping[str, str]
    why: str


class Evict(NamedTuple):
    """For `pod`; `why` names the rule and its numbers. Answer by the victim's own events, or by `evict_failed`."""

    victim: PodFacts
    pod: PodFacts
    node: str
    why: str


class Nominate(NamedTuple):
    """`pod` waits for room on `node`; empty: no longer."""

    pod: PodFacts
    node: str


class Defer(NamedTuple):
    """It found no node, or has to wait. `until`: when it is tried again, unless an event that helps comes first."""

    pod: PodFacts
    reason: str  # one word, for events: FailedScheduling, SchedulingGated, Waiting …
    why: str  # a sentence with numbers
    until: float


Decision: TypeAlias = Bind | Evict | Nominate | Defer
