"""The overcommit file: how much of which nodes may be lent. A strategy for the fleet, and others for chosen nodes.

    cpu: {thresholdPercent: 70}
    nodes:
    - name: batch-pool
      nodeSelector: {matchLabels: {pool: batch}}
      memory: {thresholdPercent: 85}

What an entry of `nodes` does not say is as the fleet has it, what the fleet does not say is the default. The first
entry that selects a node counts for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog

from j10ce.daemon.config_file import MOST_BYTES, plain_of
from j10ce.errors import Denied, Finding, Invalid
from j10ce.manager.access.tls import follow_files
from j10ce.manager.changes.patches import merge
from j10ce.model.kinds import NodeQoS, Selector, Strict
from j10ce.model.schema import convert, plain
from j10ce.policy.document.document import labels_of
from j10ce.policy.overcommit import DEFAULT, OvercommitStrategy
from j10ce.policy.select import matches
from j10ce.policy.validation import syntax

log = structlog.get_logger()
WHAT: Final = "overcommit file"
ABOUT: Final = ("name", "nodeSelector")
FLEET: Final = "default"  # what the strategy of all other nodes is called


class Chosen(Strict, frozen=True, kw_only=True):
    """Whom an entry of `nodes` is about; everything else in it is part of a strategy."""

    name: str
    node_selector: Selector


class ForNodes(NamedTuple):
    chosen: Chosen
    strategy: OvercommitStrategy


class Strategies(NamedTuple):
    fleet: OvercommitStrategy = DEFAULT
    entries: tuple[ForNodes, ...] = ()

    def of(self, node: NodeQoS) -> tuple[str, OvercommitStrategy]:
        """The strategy of a node and what it is called."""
        labels = labels_of(node)
        matching = (e for e in self.entries if matches(e.chosen.node_selector, labels))
        first = next(matching, None)
        return (first.chosen.name, first.strategy) if first else (FLEET, self.fleet)


class StrategyFile:
    """The strategies of a file, followed: one with mistakes is logged, and what was in force stays in force."""

    def __init__(self, path: Path | None) -> None:
        """Without a file the defaults count. Raises Denied or Invalid."""
        self._path = path
        self._held = load(path) if path else Strategies()

    def __call__(self) -> Strategies:
        """Those in force."""
        return self._held

    async def run(self) -> None:
        if self._path:
            await follow_files({(self._path,): self.reload}, asyncio.Event())

    def reload(self) -> None:
        if self._path is None:
            return
        try:
            self._held = load(self._path)
        except (Denied, Invalid) as e:
            log.error("overcommit.refused", file=str(self._path), error=str(e))
        else:
            log.info("overcommit.load", file=str(self._path), entries=len(self._held.entries))


def load(path: Path) -> Strategies:
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as e:
        raise Denied(f"cannot read the overcommit file {path}: {e.strerror}") from None
    return parse(text)


def parse(text: bytes) -> Strategies:
    """YAML or JSON; raises Invalid with every finding."""
    given = plain_of(text, WHAT)
    if given is None:
        return Strategies()
    if not isinstance(given, dict):
        raise Invalid([Finding("", None, "not a mapping", "write cpu, memory, … and nodes")], WHAT)
    fleet = {key: value for key, value in given.items() if key != "nodes"}
    listed = given.get("nodes") or []
    findings = _shape(fleet, OvercommitStrategy, "")
    if not isinstance(listed, list):
        findings.append(Finding("nodes", None, "not a list", "write - name, nodeSelector and what differs there"))
        listed = []
    findings += [f for n, entry in enumerate(listed) for f in _entry(entry, f"nodes[{n}].")]
    findings += _twice([entry.get("name") for entry in listed if isinstance(entry, dict)])
    if findings:
        raise Invalid(findings, WHAT)
    base = merge({"cpu": plain(DEFAULT.cpu), "memory": plain(DEFAULT.memory)}, fleet)
    entries = (
        ForNodes(convert(chosen, Chosen), convert(merge(base, rest), OvercommitStrategy))
        for chosen, rest in map(_cut, listed)
    )
    return Strategies(convert(base, OvercommitStrategy), tuple(entries))


def _entry(entry: object, where: str) -> Iterator[Finding]:
    if not isinstance(entry, dict):
        yield Finding(where.rstrip("."), None, "not a mapping", "write name, nodeSelector and what differs there")
        return
    chosen, rest = _cut(entry)
    wrong = [*_shape(chosen, Chosen, where), *_shape(rest, OvercommitStrategy, where)]
    yield from wrong
    if wrong:
        return
    made = convert(chosen, Chosen)
    yield from syntax.name(f"{where}name", made.name)
    if made.name == FLEET:
        yield Finding(f"{where}name", made.name, "means the strategy of the fleet", "call it something else")
    yield from syntax.selector(f"{where}nodeSelector", made.node_selector)
    if made.node_selector == Selector():
        yield Finding(f"{where}nodeSelector", None, "selects every node", "say it for the fleet, outside of nodes")


def _cut(entry: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(whom it is about, what differs there)"""
    chosen = {key: value for key, value in entry.items() if key in ABOUT}
    return chosen, {key: value for key, value in entry.items() if key not in ABOUT}


def _shape(given: object, into: type[Strict], where: str) -> list[Finding]:
    try:
        made = convert(given, into)
    except Invalid as e:
        return [f._replace(path=f"{where}{f.path}") for f in e.findings]
    if isinstance(made, OvercommitStrategy) and not made.degrade.seconds:
        return [Finding(f"{where}degrade", str(made.degrade), "no report is as young as that", "write 15m, or 1h")]
    return []


def _twice(names: list[object]) -> Iterator[Finding]:
    for n, name in enumerate(names):
        if name is not None and name in names[:n]:
            yield Finding(f"nodes[{n}].name", name, "stands here twice", "describe tells nodes by it")
