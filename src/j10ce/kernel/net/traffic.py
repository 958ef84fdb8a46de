"""The back end of traffic: what a workload, or a share of several, may send and receive by each link."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import Final

from j10ce.host.mounts import UNIFIED, Hierarchies
from j10ce.host.net import bpf, living
from j10ce.host.net.queues import HtbClass
from j10ce.kernel.net import htb
from j10ce.kernel.net.doors.stamps import stamp_of
from j10ce.kernel.net.program import MOST_LEVEL
from j10ce.kernel.net.tree import LinkTree, Sockets
from j10ce.kernel.net.trees import Trees, Way
from j10ce.model.knob import KNOBS, Setting, Support, TargetId, Value, kind_of, render
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

FLOOR, CEIL, PRIORITY, SHARE, DOOR = "floor", "ceil", "priority", "net.share", "net.door"
WAYS: Final[tuple[Way, ...]] = ("egress", "ingress")
UNLIMITED: Final = "max"
ENOUGH: Final = 64


class TrafficClasses:
    """A class for each that has any value of its own; all others are in one that they have together."""

    def __init__(self, trees: Trees, hierarchies: Hierarchies, support: Mapping[Way, Support]) -> None:
        self._trees = trees
        self._hierarchies = hierarchies
        self._support = support
        self._sockets: dict[str, Sockets | None] = {}  # by cgroup, as they were at the trees' moment
        self._moment = -1
        self._enough: dict[int, int] = {}  # classes of a link at which those of the dead are looked for

    def knobs(self) -> Mapping[str, Support]:
        every = {f"net.{way}.{what}": self._support[way] for way in WAYS for what in (FLOOR, CEIL, PRIORITY)}
        return every | dict.fromkeys((SHARE, DOOR), self._support["egress"])

    def instances(self, knob: str, at: Handle, /) -> Sequence[str]:
        names, every = self._trees.names(), self._trees.every()
        here = [index for way in ways(knob) for index in self._trees.by_way(way)] if every else []
        return tuple(names[index] for index in dict.fromkeys(here))

    def quantise(self, s: Setting, v: Value, /) -> Value:
        """Whole bytes; a floor that is none is 0, and none is as little as what stands for that in the kernel."""
        if not isinstance(v, float | int):
            return v
        if what(s.knob) == PRIORITY:
            return float(round(min(7.0, max(0.0, v))))
        if what(s.knob) == FLOOR:
            return float(max(htb.LEAST, min(htb.bytes_of(v), htb.NO_CEIL)) * 8) if v > 0 else 0.0
        return v if v == math.inf else float(int(v) // 8 * 8)

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        every = [tree for way in ways(s.knob) if (tree := self._tree(s, way))]
        sockets = self._sockets_of(s.target, at) if every else None
        if sockets is None:
            return None
        tree = every[0]
        branch = tree.branches.get(s.target)
        if branch is None or branch.sockets != sockets:
            return KNOBS[s.knob].default
        if s.knob == DOOR:
            known = {b.door if (b := other.branches.get(s.target)) else 0 for other in every}
            there = known == {branch.door} and self._trees.stamped(branch.door)
            return self._trees.names().get(branch.door, "") if there else ""
        return _value(s.knob, branch.now, tree)

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        return self.write_many([(s, v)], at)[0]

    def write_many(self, values: Sequence[tuple[Setting, Value]], at: Handle, /) -> list[Applied | Refused | Gone]:
        """Of one target: all that is said of one link becomes one change of its class."""
        answers: dict[Setting, Applied | Refused | Gone] = {}
        for instance, way in product(dict.fromkeys(s.instance for s, _ in values), WAYS):
            wanted = {s: v for s, v in values if s.instance == instance and way in ways(s.knob)}
            here = self._tree(next(iter(wanted)), way) if wanted else None
            if not wanted or (here is None and all(s.knob in (SHARE, DOOR) for s in wanted)):
                continue  # these are of whichever way is queued for
            if problem := self._tried(wanted, way, at):
                answers |= dict.fromkeys(wanted, problem)
        return [answers.get(s) or self._applied(s, at) for s, _ in values]

    def save(self, s: Setting, at: Handle, /) -> str | None:
        held = self.read(s, at)
        if held is None or isinstance(held, str):
            return held
        return UNLIMITED if held == math.inf or isinstance(held, frozenset) else f"{held:.0f}"

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        if s.knob in (SHARE, DOOR):
            return self.write(s, text, at)
        return self.write(s, math.inf if text == UNLIMITED else float(text), at)

    def _applied(self, s: Setting, at: Handle) -> Applied | Gone:
        held = self.read(s, at)
        return Gone() if held is None else Applied(held)

    def _tried(self, wanted: Mapping[Setting, Value], way: Way, at: Handle) -> Refused | Gone | None:
        try:
            return self._change(wanted, way, at)
        except OSError as e:
            return Refused(f"link {next(iter(wanted)).instance}: {bpf.complaint(e)}")

    def _change(self, wanted: Mapping[Setting, Value], way: Way, at: Handle) -> Refused | Gone | None:
        first = next(iter(wanted))
        tree, sockets = self._tree(first, way), self._sockets_of(first.target, at)
        if tree is None:
            return Refused(f"nothing is queued on link {first.instance} here; link.{way}.rate comes first")
        if sockets is None:
            return Gone()
        if sockets.level > MOST_LEVEL:
            return Refused(f"{at.path} lies deeper than {MOST_LEVEL} cgroups")
        branch = tree.branches.get(first.target)
        now, before = (branch.now, branch.door) if branch and branch.sockets == sockets else (bare(), 0)
        door = self._door(tree, first.target, next((v for s, v in wanted.items() if s.knob == DOOR), None), before)
        for s, value in wanted.items():
            changed = self._with(now, s, value, tree) if s.knob != DOOR else now
            if isinstance(changed, Refused):
                return changed
            now = changed
        if isinstance(door, Refused):
            return door
        if now == bare() and not door and not (branch and tree.members(branch.minor)):
            refused = tree.drop(first.target)
        else:
            if branch is None:
                self._sweep(tree)
            refused = tree.put(first.target, sockets, now, door)
        said = any(s.knob == DOOR for s in wanted)
        return refused or (self._trees.stamp([before, door]) if said or before != door else None)

    def _door(self, tree: LinkTree, target: TargetId, wanted: Value | None, before: int) -> int | Refused:
        """The number of the link; the one that it had, where nothing is said."""
        if wanted is None:
            return before
        names = self._trees.names()
        index = self._trees.index(str(wanted)) if wanted else 0
        if index is None:
            return Refused(f"there is no link {wanted} here")
        others = (b.door for b in tree.branches.values() if b.target != target and b.door not in (0, index))
        alike = next((d for d in others if index and d in names and stamp_of(d) == stamp_of(index)), 0)
        return Refused(f"packets from {wanted} would have the stamp of {names[alike]}'s") if alike else index

    def _sweep(self, tree: LinkTree) -> None:
        """Classes of cgroups that are gone go, whenever there are twice as many as were left the last time."""
        mount = self._hierarchies.unified
        if mount is None or len(tree.branches) < self._enough.get(tree.link, ENOUGH):
            return
        cgroups = {b.sockets.cgroup: b.target for b in tree.branches.values() if b.sockets.cgroup}
        doors = tree.doors
        for gone in living.dead(mount.path, cgroups):
            tree.drop(cgroups[gone])
        self._trees.stamp(doors - tree.doors)
        self._enough[tree.link] = max(ENOUGH, 2 * len(tree.branches))

    def _with(self, now: HtbClass, s: Setting, value: Value, tree: LinkTree) -> HtbClass | Refused:
        if s.knob == SHARE and isinstance(value, str):
            parent = self._share(TargetId(value), tree) if value else htb.WHOLE
            return parent if isinstance(parent, Refused) else now._replace(parent=htb.handle(parent))
        held = self.quantise(s, value)
        if s.knob in (SHARE, DOOR) or not isinstance(held, float | int):
            return Refused(f"{s.knob} does not take {render(s.knob, value)}")
        if what(s.knob) == PRIORITY:
            return now._replace(priority=int(held))
        if what(s.knob) == CEIL:
            return now._replace(ceil=htb.bytes_of(held))
        return now._replace(rate=htb.bytes_of(held) or htb.NO_FLOOR)

    def _share(self, target: TargetId, tree: LinkTree) -> int | Refused:
        """The class that members of a share stand in, made where it is missing."""
        if target not in tree.branches and (refused := tree.put(target, Sockets(), bare())):
            return refused
        return tree.branches[target].minor

    def _tree(self, s: Setting, way: Way) -> LinkTree | None:
        index = self._trees.index(s.instance)
        return None if index is None else self._trees.of(index, way)

    def _sockets_of(self, target: TargetId, at: Handle) -> Sockets | None:
        """None: the cgroup is gone."""
        if kind_of(target) == "share":
            return Sockets()
        if self._moment != self._trees.moment:
            self._moment = self._trees.moment
            self._sockets.clear()
        path = at.path_of(UNIFIED)
        if path not in self._sockets:
            self._sockets[path] = self._of_cgroup(path)
        return self._sockets[path]

    def _of_cgroup(self, path: str) -> Sockets | None:
        try:
            inode = os.stat(self._hierarchies.directory(UNIFIED, path)).st_ino
        except (FileNotFoundError, NotADirectoryError):
            return None
        mount = self._hierarchies.unified
        above = len([step for step in mount.root.split("/") if step]) if mount else 0
        return Sockets(inode, above + len(path.split("/")))


@cache
def what(knob: str) -> str:
    return knob.rpartition(".")[2]


@cache
def ways(knob: str) -> tuple[Way, ...]:
    """A share and a door are of both."""
    return WAYS if knob in (SHARE, DOOR) else tuple(way for way in WAYS if knob.startswith(f"net.{way}."))


def bare() -> HtbClass:
    """Of somebody about whom nothing is said."""
    return HtbClass(htb.handle(htb.WHOLE), htb.NO_FLOOR, htb.NO_CEIL, htb.OTHERS_PRIORITY)


def _value(knob: str, now: HtbClass, tree: LinkTree) -> Value:
    if what(knob) == PRIORITY:
        return float(now.priority)
    if what(knob) == FLOOR:
        return 0.0 if now.rate < htb.LEAST else now.rate * 8.0
    if what(knob) == CEIL:
        return math.inf if now.ceil >= htb.NO_CEIL else now.ceil * 8.0
    above = now.parent & 0xFFFF
    return next((b.target for b in tree.branches.values() if b.minor == above), "")
