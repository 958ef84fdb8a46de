"""From what a profile says of the cache to the files of resctrl and back, through arbiter and kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.control.cache.cache import Caches
from j10ce.model.kinds import CacheSection
from j10ce.model.knob import resctrl
from j10ce.model.plan import Change, Gone, Plan, Refused, Remove, ValueChange
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Workload
from j10ce.plan.arbiter import arbitrate
from j10ce.testing import build
from j10ce.testing.beside.fake_resctrl import FakeResctrl
from tests.kernel.resctrl.test_groups import PATH, POD, Bench


class Node(Bench):
    """`tick` is one turn of the ring for pods whose profile says `cache`."""

    def snapshot(self, cache: CacheSection, *pods: Workload) -> Snapshot:
        self.kernel.track(pods)
        granted = [replace(build.entitlement(w, profile="be", tier="besteffort"), cache=cache) for w in pods]
        groups = build.tree(pods, {e.target: e for e in granted})
        snap = build.snapshot(*granted, workloads=pods, groups=groups, on=build.node(cache=self.caches.control()))
        kernel = self.kernel
        return replace(snap, settings=kernel.settings, support=kernel.support, pieces=kernel.pieces)

    def tick(self, cache: CacheSection, *pods: Workload) -> Plan:
        self.tasks.now += 1
        snap = self.snapshot(cache, *pods)
        proposals = list(Caches(Caches.Config()).propose(snap))
        plan = arbitrate(proposals, snap, (), self.kernel.quantise, originals=self.kernel.owed)
        outcome = self.kernel.apply(plan)
        assert not outcome.refused(), outcome
        return plan


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def beside(plan: Plan) -> list[Change]:
    """What changes apart from our own cgroups."""
    return [c for c in plan.changes if isinstance(c, ValueChange) or not c.target.startswith("group/")]


THIRTY = CacheSection(llc_end_percent=30, memory_bandwidth_percent=50)


def test_a_pod_is_in_its_group_after_one_tick_and_nothing_moves_afterwards(node: Node) -> None:
    node.tick(THIRTY, POD)
    assert node.caches.read("j10ce-be/schemata") == "    L3:0=3f;1=3f\n    MB:0=50;1=50\n"
    assert node.homes() == {"j10ce-be"}
    assert beside(node.tick(THIRTY, POD)) == []


def test_another_range_moves_the_ways_and_nobody(node: Node) -> None:
    node.tick(THIRTY, POD)
    node.tick(replace(THIRTY, llc_end_percent=50), POD)
    assert node.caches.read("j10ce-be/schemata") == "    L3:0=3ff;1=3ff\n    MB:0=50;1=50\n"


def test_a_profile_that_says_no_more_of_the_cache_leaves_no_group_and_all_in_the_roots(node: Node) -> None:
    node.tick(THIRTY, POD)
    plan = node.tick(CacheSection(), POD)
    assert Remove(resctrl("j10ce-be"), "nobody wants anything there") in plan.changes
    assert (list(node.caches.groups()), node.homes()) == ([], {""})
    assert beside(node.tick(CacheSection(), POD)) == []


def test_a_pod_that_is_gone_takes_its_group_along(node: Node) -> None:
    node.tick(THIRTY, POD)
    node.tasks.end(min(node.tasks.alive))
    node.cgroups.vanish(PATH)
    node.tick(THIRTY)
    assert list(node.caches.groups()) == []


def test_a_group_that_someone_else_removed_is_there_again_with_all_inside(node: Node) -> None:
    node.tick(THIRTY, POD)
    node.tick(THIRTY, POD)
    node.caches.vanish("j10ce-be")
    node.kernel.read_now([POD.target])
    node.tick(THIRTY, POD)
    assert node.caches.read("j10ce-be/schemata") == "    L3:0=3f;1=3f\n    MB:0=50;1=50\n"
    assert node.homes() == {"j10ce-be"}


def test_an_agent_that_is_killed_anywhere_on_the_way_leaves_what_the_next_one_takes_back(tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    class Mortal(FakeResctrl):
        lives = 1000

        def _age(self) -> None:
            self.lives -= 1
            if self.lives < 0:
                raise Killed

        def write(self, path: str, text: str) -> Refused | Gone | None:
            self._age()
            return super().write(path, text)

        def make(self, group: str) -> Refused | None:
            answer = super().make(group)
            self._age()
            return answer

        def move(self, task: int, group: str) -> Refused | Gone | None:
            self._age()
            return super().move(task, group)

    for lives in range(7):
        (tmp_path / str(lives)).mkdir()
        node = Node(tmp_path / str(lives))
        mortal = node.caches = Mortal(node.tasks)
        node.start()
        mortal.lives = lives
        try:
            node.tick(THIRTY, POD)
        except Killed:
            node.kernel.close()
        mortal.lives = 1000
        node.start()
        assert not node.kernel.revert().refused()
        assert (list(node.caches.groups()), node.homes()) == ([], {""}), lives
