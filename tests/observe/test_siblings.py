"""Groups beside ours on cgroup v1, where no file tells whether anything is in them, and inside services on v2."""

from __future__ import annotations

import os
from pathlib import Path

from j10ce.model.knob import ROOT
from j10ce.model.snapshot import Foreign
from j10ce.observe.groups import LOOK_EVERY_S
from j10ce.testing.cgroup_tree import Literals, fresh
from tests.observe.test_groups import RUNNING, World, adopted, made, names

HEAVY = fresh(1, cpu__shares="30000")


def counted(tmp_path: Path, tree: Literals) -> dict[str, float]:
    world = World(tmp_path, tree)
    world.tree.arrived(made("web"))
    return names(world.groups(), ROOT)


def test_empty_groups_weigh_nothing(tmp_path: Path) -> None:
    forgotten = {f"run-{n}.mount": fresh(1) for n in range(60)}
    assert counted(tmp_path, {"busy": fresh(1) | RUNNING, "old": {**HEAVY, "a": {"b": fresh(1)}}, **forgotten}) == {
        "busy": 1024.0
    }


def test_one_process_far_below_gives_a_group_its_weight(tmp_path: Path) -> None:
    pods = {"besteffort": fresh(1), "burstable": {**fresh(1), "pod1": {**fresh(1), "c1": fresh(1) | RUNNING}}}
    assert counted(tmp_path, {"kubepods": {**HEAVY, **pods}}) == {"kubepods": 30000.0}


def test_a_group_that_fills_counts_at_the_next_look(tmp_path: Path) -> None:
    world = World(tmp_path, {"cron": fresh(1)})
    world.tree.arrived(made("web"))
    assert names(world.groups(), ROOT) == {}
    Path(world.hierarchies.file("cpu", "cron", "cgroup.procs")).write_text("4711\n")
    assert names(world.groups(after_s=LOOK_EVERY_S), ROOT) == {"cron": 1024.0}


def test_a_group_with_more_empty_groups_than_can_be_looked_into_counts(tmp_path: Path) -> None:
    assert counted(tmp_path, {"crowd": {**HEAVY, **{f"g{n}": {} for n in range(1000)}}}) == {"crowd": 30000.0}


def test_a_group_too_deep_to_look_into_counts(tmp_path: Path) -> None:
    world = World(tmp_path, {"deep": HEAVY})
    here = os.open(world.hierarchies.directory("cpu", "deep"), os.O_RDONLY)
    for _ in range(20):  # step by step a path becomes longer than the kernel takes at once
        os.mkdir("d" * 250, dir_fd=here)
        above, here = here, os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(above)
    os.close(here)
    world.tree.arrived(made("web"))
    assert names(world.groups(), ROOT) == {"deep": 30000.0}


def test_an_agent_that_does_not_see_all_processes_takes_no_group_for_empty(tmp_path: Path) -> None:
    """As in a pod: of other PID namespaces cgroup v1 lists nothing."""
    world = World(tmp_path, {"system": fresh(1)})
    (world.proc / "self/ns").mkdir(parents=True)
    (world.proc / "self/ns/pid").symlink_to("pid:[4026532178]")
    world.tree = world.fresh_tree()
    world.tree.arrived(made("web"))
    assert names(world.groups(), ROOT) == {"system": 1024.0}


def test_cgroups_inside_a_service_are_seen_where_their_memory_is_protected_apart(tmp_path: Path) -> None:
    inside = {"worker": fresh(2, memory__current="9000") | RUNNING}
    world = World(tmp_path, {"db.service": {**fresh(2), **RUNNING, **inside}}, v1=())
    db = adopted("db", "db.service")
    world.tree.arrived(db)
    assert world.groups()[db.target].foreign == (Foreign("worker", 1024.0, memory_current=9000.0),)
