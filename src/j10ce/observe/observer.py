"""Samples what the sensors see, and puts everything a decision may look at into one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import structlog

from j10ce.model.knob import NODE, Setting, Support, TargetId, Value
from j10ce.model.snapshot import NodeFacts, Snapshot
from j10ce.model.workload import Entitlement, Handle, Workload
from j10ce.observe.closely import Closely
from j10ce.observe.groups import GroupTree
from j10ce.observe.sensor import OffCgroups, Sensor
from j10ce.observe.series import SeriesBook
from j10ce.policy.equipment import equipped
from j10ce.policy.strategy import EffectiveStrategy

CLOSEST_S: Final = 0.2  # rates over less than that are noise


class Observer:
    """All of it runs on the ring's thread."""

    def __init__(
        self,
        facts: NodeFacts,
        sensors: Sequence[Sensor],
        tree: GroupTree,
        refresh: Callable[[NodeFacts], NodeFacts] = lambda facts: facts,
        closely: Closely | None = None,
    ) -> None:
        """`closely`: whom its sensors look at more often; every snapshot may change that."""
        self._facts, self._said = facts, EffectiveStrategy()
        self.facts = facts  # as the machine has them, with an operator's word over them
        self.failing: dict[str, str] = {}  # sensor to its complaint
        self._sensors = sensors
        self._beside = [s for s in sensors if isinstance(s, OffCgroups)]
        self._tree = tree
        self._refresh = refresh
        self._closely = closely or Closely()
        self._book = SeriesBook()
        self._known: dict[TargetId, Workload] = {}
        self._changes = 0
        self._forgotten = -1
        self._sampled = float("-inf")
        self._log = structlog.get_logger()

    @property
    def version(self) -> int:
        """Moves when the machine or the tree does: part of what a snapshot's epoch covers."""
        return self._changes + self._tree.version

    def heed(self, said: EffectiveStrategy) -> EffectiveStrategy:
        """From now on the facts are what strategies make of them; hands back what they say."""
        self._said = said
        self._equip(self._facts, anew=True)
        return said

    def _equip(self, facts: NodeFacts, anew: bool = False) -> None:
        if facts is not self._facts or anew:
            self._facts, before = facts, self.facts
            self.facts = equipped(facts, self._said.strategy)
            self._changes += self.facts != before

    def sample(self, now: float, workloads: Collection[Workload], asked: Collection[TargetId] = ()) -> None:
        """Ask every sensor; not again right after the last time. One that raises is left out until it works.

        `asked`: whose memory is measured this time, whosever turn it is.
        """
        if now - self._sampled < CLOSEST_S:
            return
        self._sampled = now
        self._closely.asked = asked
        for sensor in self._sensors:
            try:
                for target, metric, value in sensor.sample(now, workloads):
                    self._book.add(now, target, metric, value)
            except Exception as e:
                self._fail(sensor.name, f"{type(e).__name__}: {e}")
            else:
                self.failing.pop(sensor.name, None)

    def _fail(self, name: str, complaint: str) -> None:
        if self.failing.get(name) != complaint:
            self._log.warning("sensor.fail", sensor=name, error=complaint)
        self.failing[name] = complaint

    def snapshot(
        self,
        now: float,
        wall: float,
        workloads: Mapping[TargetId, Workload],
        entitlements: Mapping[TargetId, Entitlement],
        settings: Mapping[Setting, Value],
        support: Mapping[str, Support],
        epoch: int = 0,
        remains: Mapping[TargetId, Handle] | None = None,
    ) -> Snapshot:
        """Everything at one instant. Its epoch is the caller's, moved on by whatever moved here.

        `remains`: cgroups beside those of the workloads that have something of ours.
        """
        self._follow(workloads)
        self._tree.keep(remains or {})
        self._equip(self._refresh(self._facts))
        groups = self._tree.groups(now)
        if self._forgotten != self.version:
            beside = (target for sensor in self._beside for target in sensor.targets)
            self._book.keep_only({NODE, *workloads, *groups.by_target, *beside})
            self._forgotten = self.version
        readings = self._book.at(now)
        snap = Snapshot(
            now, wall, self.facts, groups, readings, workloads, entitlements, settings, support, epoch + self.version
        )
        self._closely.follow(snap)
        return snap

    def _follow(self, workloads: Mapping[TargetId, Workload]) -> None:
        for target, workload in workloads.items():
            if self._known.get(target) is not workload:
                self.arrived(workload)
        if len(self._known) > len(workloads):
            for target in self._known.keys() - workloads:
                self.gone(target)

    def arrived(self, workload: Workload) -> None:
        """Take in one workload, or what changed of it, without looking at any other."""
        self._known[workload.target] = workload
        self._tree.arrived(workload)

    def gone(self, target: TargetId) -> None:
        self._known.pop(target, None)
        self._tree.gone(target)
