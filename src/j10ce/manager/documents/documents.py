"""Node documents at the scale of a fleet: what nodes share is made once, and a change touches only whom it concerns.

`policy.document.render` says what a document is; this is the same, kept current change by change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias

from j10ce.manager.documents.fragments import Changes, Common, Content, Fragment, Shares, spelled
from j10ce.manager.documents.size import Weights, named_by, weight_of, weight_of_all
from j10ce.model.kinds import (
    Hold,
    Meta,
    MinimalReservationPolicy,
    NodeQoS,
    NodeStrategy,
    Object,
    Policy,
    PolicyRevision,
    QoSProfile,
)
from j10ce.model.stored import Event, Key, key_of
from j10ce.policy.document.document import (
    FORMAT,
    Spread,
    bare_hold,
    fingerprint,
    labels_of,
    limit,
    obeyed_spec,
    own_part,
    placed,
    reference,
    spread,
)
from j10ce.policy.document.rollout import Near
from j10ce.policy.lifetime import decided
from j10ce.policy.reach import reaches
from j10ce.policy.select import Labels
from j10ce.policy.strategy import EffectiveStrategy, merged

MOST_CONTENTS: Final = 64  # kept: large fleets have few; where each node has its own they are made when asked for
MOST_BYTES: Final = 32 << 20  # of those, likewise; the one that was made last is kept whatever it has
Nodes: TypeAlias = set[str] | None  # None: all of them


class Document(NamedTuple):
    hash: str
    head: bytes  # the node's own part
    content: Content

    @property
    def data(self) -> bytes:
        return self.head + self.content.body


class Mark(NamedTuple):
    """What a node had to obey at one moment, to tell changes from."""

    version: int  # of what all nodes have in common
    own: Mapping[Key, Fragment]


class DocumentSource(Protocol):
    """Where an object is obeyed, and as what."""

    @property
    def uniform(self) -> bool: ...

    def on(self, node: str, labels: Labels, /) -> Policy | Hold | None: ...


class Pinned(NamedTuple):
    """A hold of one node, or of all."""

    hold: Hold

    @property
    def uniform(self) -> bool:
        return not self.hold.spec.node

    def on(self, node: str, _: Labels) -> Hold | None:
        return self.hold if self.hold.spec.node in ("", node) else None


class Documents:
    """`before` says what a policy was before that is in no history yet."""

    def __init__(self, before: Callable[[Policy], Iterable[PolicyRevision]] = lambda _: ()) -> None:
        self._before = before
        self._nodes: dict[str, NodeQoS] = {}  # known ones, and stand-ins for those that are followed
        self._followed: Counter[str] = Counter()
        self._policies: dict[str, Policy] = {}  # by uid
        self._spread: dict[str, Spread] = {}  # by uid
        self._revisions: dict[str, dict[int, PolicyRevision]] = {}  # by uid of the policy
        self._common = Common()
        self._split: dict[Key, DocumentSource] = {}  # what some nodes obey, or in different revisions
        self._own = Shares()  # of the split ones
        self._strategies: set[Key] = set()
        self._merged: dict[frozenset[bytes], EffectiveStrategy] = {}  # by the marks of those that were merged
        self._units: dict[str, dict[str, int]] = {}  # by node and policy
        self._contents: dict[tuple[int, tuple[bytes, ...]], Content] = {}
        self._parts: dict[str, bytes] = {}  # by node: what the document says of it alone
        self.weights = Weights()

    def of(self, node: str, format_: int = FORMAT) -> Document:
        """What a node has to obey, as agents of a format read it; an unknown node gets what every node gets."""
        known = node in self._nodes
        content = self._content(self._own.of(node) if known else self._alone(node), format_)
        part = (self._parts.get(node) if format_ == FORMAT else None) or self._part(node, format_)
        hash_, part = content.hashed(part)
        if known and format_ == FORMAT:
            self._parts[node] = part
        head = b'{"node":"%s","hash":"%s",%s' % (node.encode(), hash_.encode(), part[1:-1])
        return Document(hash_, head, content)

    def strategy(self, node: str) -> EffectiveStrategy:
        """What all strategies together say of a node, in the revisions that it has to obey."""
        own = self._own.of(node) if node in self._nodes else self._alone(node)
        obeyed = [f for key in self._strategies if (f := own.get(key) or self._common.held.get(key)) is not None]
        marks = frozenset(fragment.mark for fragment in obeyed)
        if marks not in self._merged:
            self._merged[marks] = merged(f.obj for f in obeyed if isinstance(f.obj, NodeStrategy))
        return self._merged[marks]

    def mark(self, node: str) -> Mark:
        return Mark(self._common.version, dict(self._own.of(node)))

    def change(self, node: str, since: Mark, format_: int = FORMAT) -> bytes | None:
        """The end of a NodeChange from there to the present; None: that is too long ago."""
        shared = self._common.since(since.version)
        if shared is None:
            return None
        changes, data = shared
        own = self._own.of(node)
        if own == since.own and format_ == FORMAT:
            return data
        lost: Changes = {key: None for key in since.own if key not in own and key not in self._common.held}
        return spelled({**changes, **lost, **{key: f for key, f in own.items() if since.own.get(key) != f}}, format_)

    def in_force(self, policy: Policy) -> tuple[int, set[str] | None]:
        """The revision of a policy that is being distributed, and the nodes that have to obey it; None: all."""
        key = key_of(policy)
        where = self._spread.get(policy.metadata.uid)
        present = where.present if where else policy
        if not isinstance(self._split.get(key), Spread):
            return present.metadata.generation, None
        mark = fingerprint(present)
        nodes = {node for node in self._own.having(key) if self._own.of(node)[key].mark == mark}
        return present.metadata.generation, nodes

    def near(self, policy: Policy, nodes: Iterable[str]) -> Near | None:
        """Of these, the one that a rollout reaches first; None where it reaches all at once."""
        where = self._spread.get(policy.metadata.uid)
        if where is None or where.stage.whole:
            return None
        return where.near((node, labels_of(self._nodes[node])) for node in nodes if node in self._nodes)

    def asked(self, policy: Policy) -> tuple[object, ...]:
        """Names what is distributed of a policy, and how far: when it is another one, nodes have to obey it anew.

        Where its units are does not count: a node that holds one unit more or less obeys it all the while.
        """
        where = self._spread.get(policy.metadata.uid)
        return (policy.metadata.uid, where.present.metadata.generation, where.stage) if where else ()

    def revisions(self, policy: Policy) -> tuple[PolicyRevision, ...]:
        """Its history."""
        return tuple(self._revisions.get(policy.metadata.uid, {}).values())

    def known(self, policy: Policy) -> tuple[PolicyRevision, ...]:
        """Its history, and what it was before that nobody has recorded yet: edits of one moment, or that nobody led."""
        return (*self.revisions(policy), *self._before(policy))

    def recorded(self, policy: Policy) -> bool:
        """Whether its present revision is in the history."""
        return policy.metadata.generation in self._revisions.get(policy.metadata.uid, ())

    def follow(self, node: str) -> None:
        """Keep the document of a node that may not be known yet."""
        self._followed[node] += 1
        if node not in self._nodes:
            self._settle(node, _stand_in(node))

    def unfollow(self, node: str) -> None:
        self._followed[node] -= 1
        if not self._followed[node]:
            del self._followed[node]
            if self._nodes.get(node) == _stand_in(node):
                self._forget(node)

    def take(self, event: Event) -> Nodes:
        """Take in a change of any kind; the nodes whose document may be another one."""
        obj, gone = event.object, event.type == "DELETED"
        match obj:
            case NodeQoS():
                touched = self._node(obj, gone)
            case QoSProfile() | MinimalReservationPolicy() | NodeStrategy():
                touched = self._policy(obj, gone)
            case Hold():
                self.weights.put(key_of(obj), None if gone else weight_of(obj))
                touched = self._lay(key_of(obj), Pinned(bare_hold(obj)) if reaches(obj) and not gone else None)
            case PolicyRevision():
                touched = self._revision(obj, gone)
            case _:
                return set()
        if touched is None:
            self._contents.clear()
        return touched

    def _node(self, node: NodeQoS, gone: bool) -> Nodes:
        name = node.metadata.name
        if gone and not self._followed[name]:
            self._forget(name)
            return set()
        self._settle(name, _stand_in(name) if gone else node)
        return {name}

    def _policy(self, policy: Policy, gone: bool) -> Nodes:
        uid = policy.metadata.uid
        touched = self._count(policy, gone)
        if isinstance(policy, NodeStrategy):
            self._merged.clear()
            (self._strategies.discard if gone else self._strategies.add)(key_of(policy))
        if gone:
            self._policies.pop(uid, None)
            self._spread.pop(uid, None)
            self.weights.put(key_of(policy), None)
            return _either(touched, self._lay(key_of(policy), None))
        before, where = self._spread.get(uid), spread(policy, self.known(policy))
        earlier = self._policies.get(uid)
        self._policies[uid], self._spread[uid] = policy, where
        if where != before or earlier is None or earlier.metadata.generation != policy.metadata.generation:
            self.weights.put(key_of(policy), weight_of_all(policy, where))
        return touched if where == before else _either(touched, self._lay(key_of(policy), where))

    def _revision(self, revision: PolicyRevision, gone: bool) -> Nodes:
        touched: Nodes = set()
        for owner in revision.metadata.owner_references:
            kept = self._revisions.setdefault(owner.uid, {})
            if gone:
                kept.pop(revision.revision, None)
            else:
                kept[revision.revision] = revision
            if not kept:
                del self._revisions[owner.uid]
            if (policy := self._policies.get(owner.uid)) is not None:
                touched = _either(touched, self._policy(policy, gone=False))
        return touched

    def _count(self, policy: Policy, gone: bool) -> set[str]:
        """Take over where a policy's units are; the nodes where their number changed."""
        if not isinstance(policy, MinimalReservationPolicy):
            return set()
        ref, before = reference(policy), self._policies.get(policy.metadata.uid)
        old = placed(before) if isinstance(before, MinimalReservationPolicy) else {}
        new = {} if gone else placed(policy)
        touched = {node for node in old.keys() | new.keys() if old.get(node) != new.get(node)}
        for node in touched:
            counts = self._units.setdefault(node, {})
            counts.pop(ref, None)
            if new.get(node):
                counts[ref] = new[node]
            elif not counts:
                del self._units[node]
            self._parts.pop(node, None)
        return touched

    def _lay(self, key: Key, source: DocumentSource | None) -> Nodes:
        """Put an object where it is obeyed; the nodes for which that changes something."""
        if source is None or source.uniform:
            return self._lay_everywhere(key, source)
        common = self._common.put(key, None)
        self._split[key] = source
        made: dict[int, Fragment] = {}
        asked = self._own.having(key) | _candidates(source, self._nodes)
        touched = {node for node in asked if self._give(node, key, source, made)}
        return touched if common is None else None

    def _lay_everywhere(self, key: Key, source: DocumentSource | None) -> Nodes:
        obeyed = source.on("", {}) if source else None
        fragment = Fragment(obeyed) if obeyed is not None else None
        before = self._common.put(key, fragment)
        self._split.pop(key, None)
        touched = self._own.having(key)
        for node in touched:
            self._own.put(node, key, None)
        return touched if before == fragment else None

    def _give(self, node: str, key: Key, source: DocumentSource, made: dict[int, Fragment]) -> bool:
        """Whether the node has another fragment than before. `made` shares those of one object among nodes."""
        obeyed = source.on(node, labels_of(self._nodes[node]))
        if obeyed is None:
            return self._own.put(node, key, None)
        return self._own.put(node, key, made.get(id(obeyed)) or made.setdefault(id(obeyed), Fragment(obeyed)))

    def _settle(self, name: str, node: NodeQoS) -> None:
        self._nodes[name] = node
        for key, source in self._split.items():
            self._give(name, key, source, {})
        self._parts.pop(name, None)

    def _forget(self, node: str) -> None:
        self._own.forget(node)
        self._nodes.pop(node, None)
        self._parts.pop(node, None)

    def _alone(self, node: str) -> dict[Key, Fragment]:
        labels = labels_of(_stand_in(node))
        obeyed = {key: source.on(node, labels) for key, source in self._split.items()}
        return {key: Fragment(obj) for key, obj in obeyed.items() if obj is not None}

    def _part(self, node: str, format_: int) -> bytes:
        spec = obeyed_spec(self._nodes.get(node) or _stand_in(node))
        return own_part(spec, self._units.get(node, {}), format_)

    def _content(self, own: Mapping[Key, Fragment], format_: int) -> Content:
        kind = (format_, tuple(fragment.mark for _, fragment in sorted(own.items())))
        content = self._contents.get(kind)
        if content is None:
            while self._contents and (len(self._contents) >= MOST_CONTENTS or self._kept_bytes() > MOST_BYTES):
                del self._contents[next(iter(self._contents))]
            content = self._contents[kind] = Content({**self._common.held, **own}, format_)
        return content

    def _kept_bytes(self) -> int:
        return sum(content.made for content in self._contents.values())


def changes_a_wish(event: Event) -> bool:
    """A heartbeat, a condition or an annotation concerns no document."""
    new, old = event.object, event.old
    if event.type != "MODIFIED" or old is None:
        return True
    return _wish(new) != _wish(old)


def _wish(obj: Object) -> tuple[object, ...]:
    meta = obj.metadata
    if isinstance(obj, QoSProfile | NodeStrategy):
        return meta.generation, meta.labels, obj.status.rollout
    if isinstance(obj, MinimalReservationPolicy):
        status = obj.status
        held = status.witness, status.admitted_generation, decided(obj), limit(obj)
        return meta.generation, meta.labels, status.rollout, held
    return meta.generation, meta.labels


def _candidates(source: DocumentSource, nodes: Iterable[str]) -> set[str]:
    """The nodes that may be concerned: asking each of ten thousand is avoided where one is named."""
    named: str | None = None
    if isinstance(source, Pinned):
        named = source.hold.spec.node
    elif isinstance(source, Spread) and source.earlier is None:
        named = named_by(source.present)
    return set(nodes) if named is None else {named}.intersection(nodes)


def _either(one: Nodes, other: Nodes) -> Nodes:
    return None if one is None or other is None else one | other


def _stand_in(node: str) -> NodeQoS:
    return NodeQoS(metadata=Meta(name=node))
