"""The group tree: ancestors, foreign siblings, what is made, and what is left over."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from j10ce.host.files import Files
from j10ce.host.handles import Layout
from j10ce.host.mounts import Hierarchies
from j10ce.model import knob
from j10ce.model.knob import ROOT, TargetId
from j10ce.model.snapshot import Foreign, Groups
from j10ce.model.workload import Handle, Part, Workload, plain_path
from j10ce.observe.demand import PF_KTHREAD
from j10ce.observe.groups import LOOK_EVERY_S, GroupTree
from j10ce.observe.siblings import TASKS, Siblings
from j10ce.testing.build import workload
from j10ce.testing.cgroup_tree import Literals, cgroup_tree, fresh

V1 = ("cpu", "cpuacct", "cpuset", "memory")
TOP = knob.group("j10ce")
TIER = knob.group("j10ce/sensitive")
RUNNING = {"cgroup.events": "populated 1\nfrozen 0", "cgroup.procs": "4711"}


def made(name: str, tier: str = "sensitive") -> Workload:
    return workload(name, handle=Handle(plain_path("j10ce", tier, f"default_{name}")))


def adopted(name: str, path: str) -> Workload:
    return workload(name, handle=Handle(path, made=False))


class World:
    def __init__(self, root: Path, tree: Literals, v1: Sequence[str] = V1) -> None:
        self.hierarchies = cgroup_tree(root / "cgroup", tree, v1=v1)
        self.proc = root / "proc"
        self.proc.mkdir()
        self.files = Files()
        self.tree = self.fresh_tree()
        self.now = 100.0

    def fresh_tree(self) -> GroupTree:
        siblings = Siblings(self.hierarchies, str(self.proc))
        return GroupTree(Layout(self.hierarchies, self.files, "j10ce"), siblings)

    def groups(self, after_s: float = 0.0) -> Groups:
        self.now += after_s
        return self.tree.groups(self.now)

    def directories(self, path: str) -> list[Path]:
        return [Path(self.hierarchies.directory(c, path)) for c in self.hierarchies.in_use()]

    def make(self, path: str) -> None:
        for directory in self.directories(path):
            directory.mkdir(parents=True)

    def remove(self, path: str) -> None:
        for directory in self.directories(path):
            shutil.rmtree(directory)

    def tasks(self, path: str, *, users: int, kernel: int = 0, busy: float | None = None) -> None:
        """`busy`: seconds that each has run or waited so far, half and half; None: a kernel that does not tell."""
        tids = range(1, users + kernel + 1)
        (self.proc / "uptime").write_text(f"{self.now} 0\n")
        for tid in tids:
            (self.proc / str(tid)).mkdir(exist_ok=True)
            self.schedule(tid, flags=PF_KTHREAD if tid > users else 4194560)
            if busy is not None:
                self.spent(tid, busy)
        name = "tasks" if self.hierarchies.version("cpu") == 1 else "cgroup.threads"
        Path(self.hierarchies.file("cpu", path, name)).write_text("".join(f"{tid}\n" for tid in tids))

    def schedule(self, tid: int, *, nice: int = 0, policy: int = 0, flags: int = 4194560, state: str = "S") -> None:
        stat = f"{tid} (odd ) name) {state} 1 1 1 0 -1 {flags} {'0 ' * 9}{nice} {'0 ' * 21}{policy} {'0 ' * 11}\n"
        (self.proc / str(tid) / "stat").write_text(stat)

    def spent(self, tid: int, busy: float) -> None:
        (self.proc / str(tid) / "schedstat").write_text(f"{int(busy * 5e8)} {int(busy * 5e8)} 7\n")


def names(groups: Groups, target: TargetId) -> dict[str, float]:
    return {f.name: f.weight for f in groups[target].foreign}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, {"system": fresh(1, cpu__shares="2048") | RUNNING, "user": fresh(1) | RUNNING})


def test_a_workload_brings_all_its_ancestors(world: World) -> None:
    world.tree.arrived(made("web"))
    groups = world.groups()
    web = made("web").target
    assert list(groups.ancestors(web)) == [TIER, TOP, ROOT]
    assert {t: (g.owned, g.exists) for t, g in groups.by_target.items()} == {
        ROOT: (False, True),
        TOP: (True, False),
        TIER: (True, False),
        web: (True, False),
    }


def test_what_was_made_exists_at_the_next_snapshot(world: World) -> None:
    world.tree.arrived(made("web"))
    before, version = world.groups(), world.tree.version
    world.make("j10ce/sensitive/default_web")
    groups = world.groups()
    assert all(g.exists for g in groups.by_target.values())
    assert groups is not before
    assert world.tree.version > version


def test_a_cgroup_that_is_only_half_made_does_not_exist(world: World) -> None:
    world.tree.arrived(made("web"))
    world.make("j10ce/sensitive/default_web")
    world.directories("j10ce/sensitive/default_web")[-1].rmdir()
    assert not world.groups()[made("web").target].exists


def test_foreign_siblings_are_counted_at_their_own_weight(world: World) -> None:
    world.tree.arrived(made("web"))
    assert names(world.groups(), ROOT) == {"system": 2048.0, "user": 1024.0}


def test_a_neighbour_that_is_adopted_into_counts_once_at_once(world: World) -> None:
    """Not as a stranger beside itself until the next look."""
    world.tree.arrived(made("web"))
    assert "system" in names(world.groups(), ROOT)
    world.tree.arrived(adopted("ssh", "system/ssh"))
    groups = world.groups()
    assert (knob.group("system") in groups.by_target, names(groups, ROOT)) == (True, {"user": 1024.0})


def test_cgroup2_siblings_have_shares_and_memory_protection(tmp_path: Path) -> None:
    tree = {
        "busy": fresh(2, cpu__weight="200", memory__low="4096", memory__current="9000") | RUNNING,
        "idle": fresh(2, cpu__weight="0") | RUNNING,
        "unset": {"memory.min": "max", **RUNNING},
        "empty": fresh(2) | {"cgroup.events": "populated 0\nfrozen 0"},
    }
    world = World(tmp_path, tree, v1=())
    world.tree.arrived(made("web"))
    assert world.groups()[ROOT].foreign == (
        Foreign("busy", 2048.0, 0.0, 4096.0, 9000.0),
        Foreign("idle", 3.0),
        Foreign("unset", 1024.0, float("inf")),
    )


def test_nothing_is_built_again_while_nothing_moves(world: World) -> None:
    world.tree.arrived(made("web"))
    first = world.groups()
    assert world.groups(after_s=1.0) is first
    world.tree.arrived(made("web"))
    assert world.groups(after_s=1.0) is first
    assert world.groups(after_s=LOOK_EVERY_S) is not first


def test_a_neighbour_whose_name_is_no_text_counts_and_can_be_named(world: World) -> None:
    world.tree.arrived(adopted("user", "user"))
    odd = os.fsdecode(b"odd\xff")
    for directory in world.directories(odd):
        directory.mkdir()
        (directory / "cpu.shares").write_text("300")
        (directory / "cgroup.procs").write_text("4711\n")
    listed = names(world.groups(), ROOT)
    assert listed["odd\\xff"] == 300.0
    assert msgspec.json.encode(listed)


def test_a_foreign_weight_that_changes_is_seen_within_ten_seconds(world: World) -> None:
    world.tree.arrived(made("web"))
    world.groups()
    version = world.tree.version
    Path(world.hierarchies.file("cpu", "user", "cpu.shares")).write_text("512\n")
    assert names(world.groups(after_s=LOOK_EVERY_S), ROOT)["user"] == 512.0
    assert world.tree.version > version


def test_an_arrival_does_not_look_into_known_groups(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.tree.arrived(made("web"))
    world.groups()
    looked: list[str] = []
    monkeypatch.setattr(Siblings, "names", lambda _, path: looked.append(path) or frozenset())
    world.tree.arrived(made("db"))
    assert made("db").target in world.groups().by_target
    assert looked == []
    world.tree.arrived(made("batch", tier="besteffort"))
    world.groups()
    assert looked == ["j10ce_besteffort"]


def test_an_adopted_workload_has_ancestors_that_are_not_ours(tmp_path: Path) -> None:
    tree = {"system": {**fresh(1), "ssh": fresh(1), "cron": fresh(1, cpu__shares="100") | RUNNING}}
    world = World(tmp_path, tree)
    world.tree.arrived(adopted("ssh", "system/ssh"))
    groups = world.groups()
    system = knob.group("system")
    assert {t: g.owned for t, g in groups.by_target.items()} == {
        ROOT: False,
        system: False,
        adopted("ssh", "").target: False,
    }
    assert names(groups, system) == {"cron": 100.0}
    assert names(groups, ROOT) == {}


def test_a_workload_that_goes_takes_its_lone_ancestors_along(tmp_path: Path) -> None:
    world = World(tmp_path, {"system": {"ssh": fresh(1)}})
    ssh = adopted("ssh", "system/ssh")
    world.tree.arrived(ssh)
    world.groups()
    world.tree.gone(ssh.target)
    assert set(world.groups().by_target) == {ROOT}


def test_a_cgroup_of_ours_stays_until_it_is_removed(world: World) -> None:
    web, path = made("web"), "j10ce/sensitive/default_web"
    world.make(path)
    world.tree.arrived(web)
    world.groups()
    world.tree.gone(web.target)
    assert world.groups()[web.target].exists
    assert not world.groups()[web.target].busy
    world.remove(path)
    assert web.target not in world.groups().by_target
    assert {TIER, TOP} <= set(world.groups().by_target)
    world.remove("j10ce")
    assert set(world.groups(after_s=LOOK_EVERY_S).by_target) == {ROOT}


def test_a_tier_that_was_removed_when_its_last_workload_ended_is_made_again_for_the_next(world: World) -> None:
    world.make("j10ce/sensitive/default_first")
    world.tree.arrived(made("first"))
    assert world.groups()[TIER].exists
    world.tree.gone(made("first").target)
    for directory in world.directories("j10ce/sensitive"):
        shutil.rmtree(directory)
    world.tree.arrived(made("next"))
    assert not world.groups()[TIER].exists


def test_leftovers_of_an_earlier_agent_are_found(world: World) -> None:
    world.make("j10ce/standard/default_old")
    world.make("j10ce/sensitive/default_web")
    world.tree.arrived(made("web"))
    for _ in range(3):
        groups = world.groups(after_s=1.0)
    old, standard = knob.group("j10ce/standard/default_old"), knob.group("j10ce/standard")
    assert {old, standard} <= set(groups.by_target)
    assert groups[old].owned
    assert names(groups, TOP) == {}  # they are groups of ours, not foreign


def test_a_leftover_becomes_the_workload_that_comes_back(world: World) -> None:
    world.make("j10ce/sensitive/default_web")
    for _ in range(4):
        world.groups(after_s=1.0)
    assert knob.group("j10ce/sensitive/default_web") in world.groups().by_target
    world.tree.arrived(made("web"))
    assert made("web").target in world.groups().by_target
    assert knob.group("j10ce/sensitive/default_web") not in world.groups().by_target


def test_a_cgroup_of_ours_with_something_in_it_is_busy(world: World) -> None:
    web, path = made("web"), "j10ce/sensitive/default_web"
    world.make(path)
    world.tree.arrived(web)
    world.tree.gone(web.target)
    before = world.tree.version
    procs = Path(world.hierarchies.file("cpu", path, "cgroup.procs"))
    procs.write_text("4711\n")
    assert world.groups()[web.target].busy
    assert world.tree.version > before
    procs.write_text("")
    assert not world.groups()[web.target].busy
    world.make(f"{path}/inner")
    assert world.groups()[web.target].busy


def test_a_name_that_comes_back_elsewhere_is_in_the_tree_once(world: World) -> None:
    old, new = "j10ce/standard/default_web", "j10ce/sensitive/default_web"
    world.make(old)
    world.tree.arrived(workload("web", handle=Handle(old)))
    world.groups()
    world.tree.gone(made("web").target)
    world.make(new)
    world.tree.arrived(workload("web", handle=Handle(new)))
    groups = world.groups()
    assert groups[made("web").target].path == new
    assert groups[knob.group(old)].exists


def test_what_is_still_to_be_given_back_stays_in_the_tree(tmp_path: Path) -> None:
    world = World(tmp_path, {"system": {"ssh": fresh(1)}})
    ssh, system = adopted("ssh", "system/ssh"), knob.group("system")
    world.tree.arrived(ssh)
    world.tree.keep({ssh.target: ssh.handle, system: Handle("system", made=False)})
    world.tree.gone(ssh.target)
    assert set(world.groups().by_target) == {ROOT, system, ssh.target}
    assert not world.groups()[ssh.target].owned
    world.tree.keep({system: Handle("system", made=False)})
    assert set(world.groups().by_target) == {ROOT, system}
    world.tree.keep({})
    assert set(world.groups().by_target) == {ROOT}


def test_an_existing_cgroup_that_vanishes_is_noticed(world: World) -> None:
    world.make("j10ce/sensitive/default_web")
    world.tree.arrived(made("web"))
    assert world.groups()[made("web").target].exists
    world.remove("j10ce/sensitive/default_web")
    assert not world.groups(after_s=LOOK_EVERY_S)[made("web").target].exists


def test_a_workload_that_moves_leaves_no_trace_behind(tmp_path: Path) -> None:
    world = World(tmp_path, {"a": {"web": fresh(1)}, "b": {"web": fresh(1)}})
    world.tree.arrived(adopted("web", "a/web"))
    world.tree.arrived(adopted("web", "b/web"))
    assert set(world.groups().by_target) == {ROOT, knob.group("b"), adopted("web", "").target}


def test_parts_hang_below_their_workload(tmp_path: Path) -> None:
    world = World(tmp_path, {"pods": {"p1": {"c1": fresh(1), "pause": fresh(1, cpu__shares="2") | RUNNING}}})
    pod = workload("p1", handle=Handle("pods/p1", made=False), parts=(Part("c1", Handle("pods/p1/c1", made=False)),))
    world.tree.arrived(pod)
    groups = world.groups()
    part = knob.part("default", "p1", "c1")
    assert groups.parent(part) == pod.target
    assert names(groups, pod.target) == {"pause": 2.0}
    world.tree.gone(pod.target)
    assert set(world.groups().by_target) == {ROOT}


def test_a_part_in_the_cgroup_of_its_workload_does_not_displace_it(tmp_path: Path) -> None:
    world = World(tmp_path, {"pod": fresh(1)})
    pod = workload("pod", handle=Handle("pod", made=False), parts=(Part("main", Handle("pod", made=False)),))
    world.tree.arrived(pod)
    assert set(world.groups().by_target) == {ROOT, pod.target}


def test_a_top_group_that_appears_is_in_the_next_look(world: World) -> None:
    world.groups()
    world.make("j10ce")
    assert world.groups(after_s=LOOK_EVERY_S)[TOP].exists


def test_a_workload_inside_a_workload_keeps_its_ancestor(tmp_path: Path) -> None:
    world = World(tmp_path, {"outer": {"inner": fresh(1)}})
    outer, inner = adopted("outer", "outer"), adopted("inner", "outer/inner")
    world.tree.arrived(outer)
    world.tree.arrived(inner)
    assert world.groups().parent(inner.target) == outer.target
    world.tree.gone(outer.target)
    assert world.groups().parent(inner.target) == knob.group("outer")


def test_a_workload_without_a_cgroup_has_no_group(world: World) -> None:
    world.tree.arrived(workload("nowhere", handle=Handle()))
    assert set(world.groups().by_target) == {ROOT}


def test_memory_and_enabled_controllers_are_reported(tmp_path: Path) -> None:
    tree = {"system": fresh(2, memory__current="5000") | {"cgroup.subtree_control": "cpu memory", "ssh": fresh(2)}}
    world = World(tmp_path, tree, v1=())
    world.tree.arrived(adopted("ssh", "system/ssh"))
    system = world.groups()[knob.group("system")]
    assert (system.memory_current, system.enabled) == (5000.0, {"cpu", "memory"})
    Path(world.hierarchies.file("cpu", "system", "cgroup.subtree_control")).write_text("cpu\n")
    assert world.groups()[knob.group("system")].enabled == {"cpu"}


def test_on_v1_every_controller_is_everywhere(world: World) -> None:
    world.make("j10ce/sensitive/default_web")
    world.tree.arrived(made("web"))
    assert world.groups()[TOP].enabled == set(V1)


@pytest.mark.host
def test_the_real_tree_is_seen_as_it_is(own_tree: tuple[Hierarchies, str]) -> None:
    hierarchies, top = own_tree
    tree = GroupTree(Layout(hierarchies, Files(), top), Siblings(hierarchies))
    for name in ("tier", "tier/web", "tier/old"):
        for controller in hierarchies.in_use():
            Path(hierarchies.directory(controller, f"{top}/{name}")).mkdir()
    web = workload("web", handle=Handle(f"{top}/tier/web"))
    tree.arrived(web)
    tree.groups(1.0)
    groups = tree.groups(2.0)
    assert all(g.exists for g in groups.by_target.values())
    assert not groups[knob.group(f"{top}/tier/old")].busy
    assert {f.name for f in groups[ROOT].foreign} >= {TASKS}
