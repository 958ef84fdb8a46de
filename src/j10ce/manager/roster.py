"""Who is in the fleet: nodes as its ledger takes them in, by what their agents report."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from j10ce.manager.nodes import SILENT_S, stale_since
from j10ce.manager.pledges import to_node
from j10ce.model.kinds import MinimalReservationPolicy, NodeQoS
from j10ce.policy.document import labels_of
from j10ce.policy.select import Labels
from j10ce.scheduler.pledge import Node


class Changes(NamedTuple):
    """Since the look before."""

    fresh: Sequence[Node]  # came, or became another one
    gone: Collection[str]
    fewer: bool  # some can hold nothing any more: units have to move at once


class Roster(Protocol):
    def look(
        self, nodes: Iterable[NodeQoS], policies: Collection[MinimalReservationPolicy], wall: float
    ) -> Changes: ...

    def lost(self) -> Iterator[tuple[str, Labels]]:
        """Nodes that exist and can hold nothing, by name, with their labels."""
        ...

    def outsiders(self, node: str) -> Sequence[str]:
        """Who has room on a node that no promise gave them, as far as is known; who has most goes first."""
        ...


class ReportedRoster:
    """A node is what its agent says. Objects of the last look that are the same instances cost nothing."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[NodeQoS, bool]] = {}  # as taken in, and whether lost
        self._since: float | None = None

    def look(self, nodes: Iterable[NodeQoS], policies: Collection[MinimalReservationPolicy], wall: float) -> Changes:
        self._since = wall if self._since is None else self._since
        known = self._nodes
        self._nodes = {node.metadata.name: (node, self._lost(node, wall)) for node in nodes}
        fresh: list[Node] = []
        for name, (node, lost) in self._nodes.items():
            before = known.get(name)
            if before is None or before[0] is not node or before[1] != lost:
                fresh.append(to_node(node, lost=lost))
        gone = known.keys() - self._nodes.keys()
        fewer = any(lost and not known.get(name, (node, True))[1] for name, (node, lost) in self._nodes.items())
        return Changes(fresh, gone, bool(gone) or fewer)

    def lost(self) -> Iterator[tuple[str, Labels]]:
        return ((name, labels_of(node)) for name, (node, lost) in self._nodes.items() if lost)

    def outsiders(self, node: str) -> Sequence[str]:
        return ()  # an agent tells of what it protects

    def _lost(self, node: NodeQoS, wall: float) -> bool:
        """Silent for too long, as far as this manager can know: whoever takes over listens for a while first."""
        since = wall if self._since is None else self._since
        silent_s = stale_since(node, wall)
        return silent_s is not None and (silent_s == math.inf or wall - since > SILENT_S)


_: type[Roster] = ReportedRoster
