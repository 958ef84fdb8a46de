"""What the agents say, by policy: kept report by report, so that a judgement costs what has changed and no more."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Set
from typing import Final, NamedTuple, TypeVar

from j10ce.manager.documents.documents import Documents, Nodes
from j10ce.manager.documents.silence import SILENT_S, Hear
from j10ce.model.kinds import EffectiveFloor, NodeQoS, NodeReport, NodeStrategy, Policy, ReservationReport
from j10ce.model.stored import Event
from j10ce.policy.document.document import FORMAT, FORMATS, reference
from j10ce.policy.document.rollout import NodesSeen

GONE_S: Final = 600.0  # nobody waits any longer for a node that is silent
NEVER: Final = -2
EARLIER: Final = -1  # before this leader; its own epochs count from 0
V = TypeVar("V")


class PolicyReport(NamedTuple):
    """What one node says about one policy."""

    node: str
    report: ReservationReport
    effective: tuple[EffectiveFloor, ...] = ()
    failing: str = ""

    @property
    def problem(self) -> str:
        """Why the node does not give what the policy asks for; empty when it does."""
        if self.failing or self.report.refused:
            return self.failing or self.report.refused
        short = next((f for f in self.effective if falls_short(f)), None)
        if short is None:
            return ""
        return f"{short.workload} has {short.effective} of {short.promised} {short.resource}: {short.reason}"


class RolloutStanding(NamedTuple):
    """Where the nodes stand with the revision of a policy that is being distributed."""

    revision: int
    wanted: int
    silent: int  # of the wanted ones
    failing: Mapping[str, str]  # node: why
    seen: NodesSeen  # as its rollout sees it: nodes that fell silent after taking it fail, too
    version: int = 0  # moves whenever a node says something else about the policy


class Laggards:
    """Nodes whose document is not known to be right, by the epoch up to which it was.

    Policies share the answers: there are few epochs, and many policies.
    """

    def __init__(self, nodes: Iterable[str], obeyed: Mapping[str, int]) -> None:
        self._nodes: dict[int, set[str]] = {}
        for node in nodes:
            self._nodes.setdefault(obeyed.get(node, NEVER), set()).add(node)
        self._epochs = sorted(self._nodes)
        self._made: dict[int, Set[str]] = {}

    def before(self, epoch: int) -> Set[str]:
        """Those that are not known to obey what changed in an epoch."""
        late = bisect_left(self._epochs, epoch)
        if late not in self._made:
            self._made[late] = frozenset().union(*(self._nodes[e] for e in self._epochs[:late]))
        return self._made[late]


class Reports:
    """Takes every change of the view, see `View.heard`, after the documents have."""

    def __init__(self, documents: Documents, hear: Hear) -> None:
        self._documents, self._hear = documents, hear
        self._nodes: dict[str, NodeQoS] = {}
        self._by_policy: dict[str, dict[str, PolicyReport]] = {}  # by policy and node
        self._problems: dict[str, dict[str, str]] = {}  # by policy and node
        self._versions: dict[str, int] = {}  # by policy
        self._silent: set[str] = set()
        self._missed: set[str] = set()  # of those, the ones that may come back any moment
        self._epoch = 0  # counts changes of what is to be obeyed
        self._asked: dict[str, tuple[object, ...]] = {}  # by policy
        self._changed: dict[str, int] = {}  # policy: the epoch in which something else was asked
        self._obeyed: dict[str, int] = {}  # node: the epoch up to which its document is known to be right
        self._older: set[str] = set()  # nodes that obey a document of an earlier format: strategies are not in it
        self._behind: set[str] = set()  # nodes whose document was not known to be right when they last spoke
        self._laggards: Laggards | None = None  # of the last two; made anew when asked for

    def take(self, event: Event, touched: Nodes) -> None:
        """`touched` are the nodes whose document the change made another one."""
        obj, gone = event.object, event.type == "DELETED"
        if isinstance(obj, NodeQoS):
            self._node(obj, gone=gone)
        if touched is None or touched:
            self._epoch += 1
            self._behind.update(self._nodes if touched is None else touched & self._nodes.keys())
            self._laggards = None
        if isinstance(obj, Policy):
            self._policy(obj, gone=gone)

    def take_over(self, policies: Iterable[Policy]) -> None:
        """Once everything that is there was taken: what the last leader saw obeyed by all who report stays so.

        Nodes that have another document than they should are busy with a later change, and have not lost the earlier
        ones. Nobody vouches for those that were silent.
        """
        self._changed |= {reference(p): EARLIER for p in policies if _settled(p)}
        busy = (node for node in self._behind if not self._hear(self._nodes[node]).doubtful)
        self._obeyed |= dict.fromkeys(busy, EARLIER)
        self._laggards = None

    def look(self) -> None:
        """Silence happens without an event."""
        words = {name: self._hear(node) for name, node in self._nodes.items()}
        self._silent = {name for name, word in words.items() if word.lost}
        self._missed = {name for name in self._silent if words[name].silent_s <= GONE_S}

    def of(self, policy: Policy) -> list[PolicyReport]:
        """From the nodes that are not silent, in the order of their names."""
        by_node = self._by_policy.get(reference(policy), {})
        return [by_node[node] for node in sorted(by_node) if node not in self._silent]

    def standing(self, policy: Policy) -> RolloutStanding:
        ref = reference(policy)
        revision, nodes = self._documents.in_force(policy)
        wanted = self._nodes.keys() if nodes is None else nodes & self._nodes.keys()
        silent = self._silent if nodes is None else self._silent & wanted
        behind = self._late(ref, revision) & wanted
        behind |= self._older & wanted if isinstance(policy, NodeStrategy) else set()
        lost, out = silent - behind, behind | silent
        problems = self._problems.get(ref, {})
        failing = {node: why for node, why in problems.items() if node in wanted and node not in out}
        gone = dict.fromkeys(lost, f"silent for more than {SILENT_S:g} s after taking it")
        near = None if wanted - silent else self._documents.near(policy, self._nodes.keys() - self._silent)
        awaited = len((silent & self._missed) - lost)
        counts = len(wanted) - len(silent) + len(lost), len(wanted) - len(out)
        seen = NodesSeen(*counts, {**failing, **gone}, awaited, near)
        return RolloutStanding(revision, len(wanted), len(silent), failing, seen, self._versions.get(ref, 0))

    def _late(self, ref: str, revision: int) -> set[str]:
        """Who does not obey a policy yet: its own word about it counts first, then its document."""
        self._laggards = self._laggards or Laggards(self._behind, self._obeyed)
        late, by_node = set(self._laggards.before(self._changed.get(ref, 0))), self._by_policy.get(ref, {})
        for node in by_node.keys() & self._behind:
            if generation := by_node[node].report.generation:
                late.discard(node) if generation == revision else late.add(node)
        return late

    def _policy(self, policy: Policy, *, gone: bool) -> None:
        ref, asked = reference(policy), self._documents.asked(policy)
        if gone:
            self._asked.pop(ref, None)
            self._changed.pop(ref, None)
        elif self._asked.get(ref) != asked:
            self._asked[ref], self._changed[ref] = asked, self._epoch

    def _node(self, node: NodeQoS, *, gone: bool) -> None:
        name, before, self._laggards = node.metadata.name, self._nodes.get(node.metadata.name), None
        old = before.status.node if before else NodeReport()
        new = NodeReport() if gone else node.status.node
        if gone:
            self._nodes.pop(name, None)
            self._obeyed.pop(name, None)
            self._behind.discard(name)
            self._older.discard(name)
        else:
            self._nodes[name] = node
            self._compare(name, new.document)
        if (old.reservations, old.effective, old.failing) != (new.reservations, new.effective, new.failing):
            self._retell(name, old, new)

    def _compare(self, node: str, document: str) -> None:
        self._older.discard(node)
        reads = next((f for f in FORMATS if document and document == self._documents.of(node, f).hash), None)
        if reads is None:
            self._behind.add(node)
            return
        self._obeyed[node] = self._epoch
        self._behind.discard(node)
        if reads != FORMAT:
            self._older.add(node)

    def _retell(self, node: str, old: NodeReport, new: NodeReport) -> None:
        before, after = _by_source(node, old), _by_source(node, new)
        for source in before.keys() | after.keys():
            latest = after.get(source)
            if before.get(source) != latest:
                _put(self._by_policy, source, node, latest)
                _put(self._problems, source, node, latest and latest.problem)
                self._versions[source] = self._versions.get(source, 0) + 1


def _settled(policy: Policy) -> bool:
    """As its status tells: everyone who reported obeyed it as it is."""
    observed, nodes = policy.status.observed_generation, policy.status.nodes
    return observed == policy.metadata.generation and 0 < nodes.applied == nodes.wanted - nodes.silent


def falls_short(floor: EffectiveFloor) -> bool:
    return floor.effective.amount < floor.promised.amount


def _put(by_source: dict[str, dict[str, V]], source: str, node: str, value: V | None) -> None:
    """Set, or remove where there is nothing to say."""
    by_node = by_source.setdefault(source, {})
    by_node.pop(node, None)
    if value:
        by_node[node] = value
    elif not by_node:
        del by_source[source]


def _by_source(node: str, report: NodeReport) -> Mapping[str, PolicyReport]:
    reservations = {r.source: r for r in report.reservations}
    floors: dict[str, list[EffectiveFloor]] = {}
    for floor in report.effective:
        floors.setdefault(floor.source, []).append(floor)
    return {
        source: PolicyReport(
            node,
            reservations.get(source) or ReservationReport(source=source),
            tuple(floors.get(source, ())),
            report.failing.get(source, ""),
        )
        for source in {*reservations, *report.failing, *filter(None, floors)}
    }
