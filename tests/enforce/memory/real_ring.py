"""The real ring over this machine's kernel, with a clock that the test moves: seconds pass as fast as it can work."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.agent.ring.contained import Contained
from j10ce.agent.ring.ring import Agent, Report
from j10ce.control.builtin import build
from j10ce.daemon.clock import Instant
from j10ce.host.files import Files
from j10ce.host.handles import Layout
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.kernel.tasks.backend import TaskBackend
from j10ce.kernel.tasks.oom import OomScores
from j10ce.kernel.tasks.roll import Roll
from j10ce.model.kinds import QoSProfile
from j10ce.model.plan import Action, Outcome, Pending, Plan, Result
from j10ce.model.workload import Workload
from j10ce.observe.closely import Closely
from j10ce.observe.groups import GroupTree
from j10ce.observe.observer import Observer
from j10ce.observe.sensors import node
from j10ce.observe.sensors.cgroup import CgroupSensor
from j10ce.observe.siblings import Siblings
from j10ce.policy.document.document import NodeDocument
from j10ce.testing import build as make
from tests.enforce.workbench import Workbench, until


class RealRing:
    def __init__(self, work: Workbench, folder: Path, profiles: Sequence[QoSProfile]) -> None:
        files, hierarchies = Files(), work.hierarchies
        facts = node.discover("n1", hierarchies, files)
        tree, closely = GroupTree(Layout(hierarchies, files, work.top), Siblings(hierarchies)), Closely()
        sensor = CgroupSensor(hierarchies, files, tree.own, lambda: closely.targets, lambda: closely.asked)
        backends = [work.backend, TaskBackend(Roll(hierarchies), [OomScores()])]
        self.now, self.wall = 1000.0, make.WALL
        self.kernel = Kernel(work.tree, backends, Journal.open(folder / "journal", "boot"), guard=Guard())
        observer = Observer(facts, [sensor], tree, closely=closely)
        document = NodeDocument(node="n1", profiles=tuple(profiles))
        self.agent = Agent(self.kernel, observer, [Contained(c) for c in build({})], document, armed=True)

    def arrive(self, *workloads: Workload) -> Report:
        return self.agent.change([WorkloadEvent("ADDED", w) for w in workloads], self._instant(0.01))

    def seconds(self, count: int, between: Callable[[], object] = lambda: None) -> list[tuple[Action, Result]]:
        """So many runs of the whole ring, a second apart by its clock; what became of each deed."""
        done: list[tuple[Action, Result]] = []
        for _ in range(count):
            outcome = self.agent.tick(self._instant(1.0)).outcome
            done += [*self._finished(outcome)]
            between()
        return done

    def _finished(self, outcome: Outcome) -> list[tuple[Action, Result]]:
        """Once all of its deeds are: the kernel takes its time, and this clock stands still meanwhile."""
        pending = {a.what for a, result in outcome.deeds if isinstance(result, Pending)}
        late = [(a, result) for a, result in outcome.deeds if not isinstance(result, Pending)]

        def over() -> bool:
            late.extend(self.kernel.apply(Plan()).deeds)
            return pending <= {a.what for a, _ in late}

        until(over)
        return late

    def _instant(self, seconds: float) -> Instant:
        self.now += seconds
        self.wall += seconds
        return Instant(self.now, self.wall)


def alive(pid: int) -> bool:
    """A zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def score(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def own_score() -> int:
    return score(os.getpid())
