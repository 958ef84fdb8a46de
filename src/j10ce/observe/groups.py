"""The part of the cgroup tree that matters, kept up to date step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from j10ce.host.handles import Layout
from j10ce.model import knob
from j10ce.model.knob import TargetId
from j10ce.model.snapshot import Foreign, Group, Groups
from j10ce.model.workload import Handle, Workload
from j10ce.observe.siblings import Siblings, shown

LOOK_EVERY_S: Final = 10.0
LOOK_INTO_WORKLOADS_EVERY_S: Final = 120.0  # inside a workload little comes and goes
LOOK_AT_THREADS_EVERY_S: Final = 2.0  # a thread beside our groups that begins to spin takes from floors at once
MANY_THREADS: Final = 500  # of more than that each look would cost too much
LOOKS_AT_ONCE: Final = 4


class _Node:
    """One cgroup. Stays while a workload is in or below it or something is owed to it, and, if ours, until removed."""

    def __init__(self, path: str, parent: _Node | None) -> None:
        self.path = path
        self.parent = parent
        self.target = knob.group(path)
        self.handle = Handle(path)
        self.owned = False
        self.exists = False
        self.uses = 0  # live targets in or below
        self.owed = False  # something of it is still to be given back
        self.busy = False  # of ours and not in use: something is in it all the same
        self.children: dict[str, _Node] = {}  # by the last step of their paths
        self.foreign: tuple[Foreign, ...] = ()
        self.enabled: frozenset[str] | None = None
        self.due = 0.0  # when to look inside again

    @property
    def is_group(self) -> bool:
        return self.target.startswith("group/")

    def upwards(self) -> Iterator[_Node]:
        here: _Node | None = self
        while here is not None:
            yield here
            here = here.parent


class GroupTree:
    """Every managed cgroup with all its ancestors, and whatever of ours is left over.

    `version` moves when the tree, its foreign siblings or its enabled controllers do. Memory figures are as of the
    last rebuild (10 s at most) and move nothing. Looks into groups are spread over ticks; an arrival looks only
    into groups that were not known before.
    """

    def __init__(self, layout: Layout, siblings: Siblings) -> None:
        self.version = 0
        self._layout = layout
        self._siblings = siblings
        self._root = _Node("", None)
        self._root.exists = True
        self._nodes: dict[str, _Node] = {"": self._root}  # by path
        self._live: dict[TargetId, list[_Node]] = {}
        self._owed: dict[TargetId, Handle] = {}
        self._left: dict[TargetId, _Node] = {}  # of ours, still under the names of workloads that are gone
        self._groups = Groups()
        self._built: tuple[int, float] = (-1, 0.0)

    def arrived(self, w: Workload) -> None:
        """Take a workload and its parts in, or what changed of a known one. One without a cgroup has no group."""
        places = list(_places(w))
        if [(n.target, n.handle) for n in self._live.get(w.target, ())] == places:
            return
        self.gone(w.target)
        self._live[w.target] = [self._take(target, handle) for target, handle in places]
        self.version += 1

    def gone(self, target: TargetId) -> None:
        """A cgroup that we made stays in the tree until it is removed, still under its target."""
        for node in reversed(self._live.pop(target, [])):
            for up in node.upwards():
                up.uses -= 1
            if node.uses:
                self._name(node, knob.group(node.path), Handle(node.path), self._layout.ours(node.path))
            else:
                node.exists = self._layout.exists(node.handle, node.owned)
                self._left[node.target] = node
                self._prune(node)
            self.version += 1

    def keep(self, remains: Mapping[TargetId, Handle]) -> None:
        """What still has something of ours stays in the tree, though no workload needs it; nothing else does."""
        if remains == self._owed:
            return
        for target in self._owed.keys() - remains:
            node = self._nodes.get(self._owed[target].path)
            if node is not None:
                node.owed = False
                self._prune(node)
        for target, handle in remains.items():
            node = self._node(handle.path)
            node.owed = True
            if target not in self._live and not node.uses:
                self._name(node, target, handle, handle.made)
        self._owed = dict(remains)
        self.version += 1

    def groups(self, now: float) -> Groups:
        """The tree at this instant; the same object as long as nothing moved and no figure is due."""
        self._recheck()
        self._look(now)
        version, at = self._built
        if version != self.version or now - at >= LOOK_EVERY_S:
            self._groups = Groups({n.target: self._group(n) for n in self._nodes.values()})
            self._built = (self.version, now)
        return self._groups

    def own(self) -> dict[TargetId, Handle]:
        """Groups of ours that hold something."""
        return {n.target: n.handle for n in self._nodes.values() if n.owned and n.uses and n.is_group and n.exists}

    def _take(self, target: TargetId, handle: Handle) -> _Node:
        node, left = self._node(handle.path), self._left.pop(target, None)
        if left is not None and left is not node and left.target == target:  # the name has another place
            self._name(left, knob.group(left.path), Handle(left.path), self._layout.ours(left.path))
        self._name(node, target, handle, handle.made)
        for up in node.upwards():
            if up.owned and not up.uses:  # it may have been removed while nobody was in it
                self._note_existence(up)
            up.uses += 1
        return node

    def _node(self, path: str) -> _Node:
        """The node of a path; one that is not known yet is a group, and so are its ancestors."""
        node = self._nodes.get(path)
        if node is None:
            above, _, name = path.rpartition("/")
            parent = self._node(above)
            node = self._nodes[path] = parent.children[name] = _Node(path, parent)
            self._name(node, node.target, node.handle, self._layout.ours(path))
            # It is no stranger any more, whatever the last look said: it would count twice until the next one.
            parent.foreign = tuple(f for f in parent.foreign if f.name != shown(name))
            self.version += 1
        return node

    def _name(self, node: _Node, target: TargetId, handle: Handle, owned: bool) -> None:
        node.target, node.handle, node.owned = target, handle, owned
        node.exists = self._layout.exists(handle, owned)

    def _prune(self, node: _Node) -> None:
        """Drop it, and each ancestor that was there for it alone."""
        while node.parent and not (node.uses or node.children or node.owed or (node.owned and node.exists)):
            del self._nodes[node.path], node.parent.children[node.path.rpartition("/")[2]]
            self._siblings.forget(node.path)
            self.version += 1
            node = node.parent

    def _recheck(self) -> None:
        """What is to be made or removed may have been; so may controllers have been enabled. A look does the rest."""
        for node in list(self._nodes.values()):
            if not node.exists or not (node.uses or (node.is_group and not node.owned)):
                self._settle(node)
            self._note_busy(node)
            if node.children and (enabled := self._layout.enabled(node.handle)) != node.enabled:
                node.enabled = enabled
                self.version += 1

    def _note_busy(self, node: _Node) -> None:
        unused = node.owned and node.exists and not node.uses
        busy = unused and self._layout.busy(node.handle, node.children)
        self.version += busy != node.busy
        node.busy = busy

    def _settle(self, node: _Node) -> None:
        self._note_existence(node)
        self._prune(node)

    def _note_existence(self, node: _Node) -> None:
        exists = self._layout.exists(node.handle, node.owned)
        self.version += node.exists != exists
        node.exists = exists

    def _look(self, now: float) -> None:
        """Into every group in use that was never looked into; into a few others each time, those in use first."""
        everyone = self._siblings.divide_memory
        due = [n for n in self._nodes.values() if n.due <= now and (n.children or n.is_group or (everyone and n.uses))]
        due.sort(key=lambda n: (not n.uses, not n.is_group, n.due))
        unseen = sum(n.due == 0.0 and n.is_group and n.uses > 0 for n in due)
        for node in due[: max(unseen, LOOKS_AT_ONCE)]:
            self._look_into(node, now)
            node.due = now + self._patience(node)

    def _patience(self, node: _Node) -> float:
        if not node.is_group:
            return LOOK_INTO_WORKLOADS_EVERY_S
        few = node.children and 0 < self._siblings.threads(node.path) <= MANY_THREADS
        return LOOK_AT_THREADS_EVERY_S if few else LOOK_EVERY_S

    def _look_into(self, node: _Node, now: float) -> None:
        for top in self._layout.tops if node is self._root else ():
            if self._layout.exists(Handle(top), owned=False):
                self._node(top)
        names = self._siblings.names(node.path)
        for name, child in list(node.children.items()):
            if name not in names:
                self._settle(child)
        strangers = names - node.children.keys()
        if node.owned and node.is_group:  # leftovers are counted as groups, not as foreign
            ours = {name for name in strangers if shown(name) == name}  # whoever made another one is to remove it
            for name in ours:
                self._node(f"{node.path}/{name}")
            strangers -= ours
        foreign = self._siblings.foreign(node.path, strangers, now)
        self.version += _weights(foreign) != _weights(node.foreign)
        node.foreign = foreign

    def _group(self, n: _Node) -> Group:
        parent = n.parent.target if n.parent else None
        used = self._layout.memory_current(n.handle) if n.exists else 0.0
        return Group(n.target, parent, n.path, n.owned, n.exists, n.foreign, used, n.enabled, n.busy)


def _places(w: Workload) -> Iterator[tuple[TargetId, Handle]]:
    if w.handle.path:
        yield w.target, w.handle
    for part in w.parts:
        if part.handle.path not in ("", w.handle.path):
            yield knob.part(w.namespace, w.name, part.name), part.handle


def _weights(foreign: Sequence[Foreign]) -> list[tuple[str, float, float, float]]:
    return [f[:4] for f in foreign]
