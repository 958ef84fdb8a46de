"""Who is in the fleet: nodes as its ledger takes them in, by what their agents report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from j10ce.manager.documents.silence import Hear
from j10ce.manager.policies.pledges import to_node
from j10ce.model.kinds import MinimalReservationPolicy, NodeQoS
from j10ce.policy.document.document import labels_of
from j10ce.policy.select import Labels
from j10ce.scheduler.ledger.pledge import FleetNode


class Changes(NamedTuple):
    """Since the look before."""

    fresh: Sequence[FleetNode]  # came, or became another one
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


class RosterNode(NamedTuple):
    """A node as it was taken in."""

    node: NodeQoS
    lost: bool
    doubtful: bool  # it keeps what it has, and takes no more

    def same(self, other: RosterNode | None) -> bool:
        return other is not None and self.node is other.node and self[1:] == other[1:]


class ReportedRoster:
    """A node is what its agent says. Objects of the last look that are the same instances cost nothing."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self._nodes: dict[str, RosterNode] = {}

    def look(self, nodes: Iterable[NodeQoS], policies: Collection[MinimalReservationPolicy], wall: float) -> Changes:
        known = self._nodes
        words = ((node, self._hear(node)) for node in nodes)
        self._nodes = {node.metadata.name: RosterNode(node, word.lost, word.doubtful) for node, word in words}
        fresh = [to_node(*taken) for name, taken in self._nodes.items() if not taken.same(known.get(name))]
        gone = known.keys() - self._nodes.keys()
        fewer = any(taken.lost and name in known and not known[name].lost for name, taken in self._nodes.items())
        return Changes(fresh, gone, bool(gone) or fewer)

    def lost(self) -> Iterator[tuple[str, Labels]]:
        return ((name, labels_of(taken.node)) for name, taken in self._nodes.items() if taken.lost)

    def outsiders(self, node: str) -> Sequence[str]:
        return ()  # an agent tells of what it protects


_: type[Roster] = ReportedRoster
