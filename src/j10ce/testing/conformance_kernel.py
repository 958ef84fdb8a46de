"""What every back end and every tree must do, be it fake or real. Subclass, and give the fixtures.

class TestMine(BackendConformance, TreeConformance):
    @pytest.fixture
    def bench(self) -> Bench: ...
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from j10ce.kernel.backend import Backend, Disables, Tree
from j10ce.model.knob import CGROUP_KNOBS, KNOBS, PERIOD_US, KnobRole, Setting, TargetId, Value, group, workload
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

CONTROLLERS = frozenset({"cpu", "cpuset", "memory"})
MIB = float(1 << 20)

WRITES = [
    pytest.param("cpu.weight", 2.0, id="the least weight"),
    pytest.param("cpu.weight", 512.0, id="a middling weight"),
    pytest.param("cpu.weight", 100_000.0, id="a great weight"),
    pytest.param("cpu.idle", 1.0, id="idle"),
    pytest.param("cpu.max", 1000.0, id="the least quota"),
    pytest.param("cpu.max", 37_512.0, id="a part of a CPU"),
    pytest.param("cpu.max", 4.0 * PERIOD_US, id="more than one CPU"),
    pytest.param("cpu.max", math.inf, id="no quota"),
    pytest.param("cpuset.cpus", frozenset({0}), id="one CPU"),
    pytest.param("cpuset.cpus", frozenset(), id="CPUs as the parent"),
    pytest.param("memory.min", 16 * MIB, id="a hard floor"),
    pytest.param("memory.low", 16 * MIB + 5, id="a soft floor that is no whole page"),
    pytest.param("memory.high", 64 * MIB, id="a throttle"),
    pytest.param("memory.max", 64 * MIB + 4095, id="a limit that is no whole page"),
    pytest.param("memory.max", math.inf, id="no limit"),
    pytest.param("memory.oom.group", 1.0, id="killed as one"),
    pytest.param("cgroup.freeze", 1.0, id="frozen"),
]


@dataclass(frozen=True)
class Bench:
    """A machine to try things on: a tree with our top group in it, its controllers enabled, and one child."""

    tree: Tree
    backend: Backend
    top: str
    enforcing: bool = True  # False: files without a kernel behind them

    @property
    def child(self) -> Handle:
        return Handle(f"{self.top}/child")

    @property
    def target(self) -> TargetId:
        return group(self.child.path)

    def setting(self, knob: str) -> Setting:
        """Of the child; a knob that this machine lacks skips the test."""
        support = self.backend.knobs()[knob]
        if not support.ok:
            pytest.skip(f"Unsupported: {knob} needs {support.needs}")
        return Setting(self.target, knob)


def furnish(tree: Tree, backend: Backend, top: str) -> Bench:
    """Make the top group and its child through the tree itself."""
    bench = Bench(tree, backend, top)
    for result in (
        tree.enable(group(""), CONTROLLERS),
        tree.make(group(top), Handle(top)),
        tree.enable(group(top), CONTROLLERS),
        tree.make(bench.target, bench.child),
    ):
        assert isinstance(result, Applied), result
    return bench


class BackendConformance:
    def test_every_knob_is_offered_or_says_what_it_needs(self, bench: Bench) -> None:
        offered = bench.backend.knobs()
        assert offered.keys() >= CGROUP_KNOBS.keys()
        assert all(s.via if s.ok else s.needs for s in offered.values())

    @pytest.mark.parametrize("knob", [k.name for k in CGROUP_KNOBS.values() if k.role is not KnobRole.PLACEMENT])
    def test_a_fresh_cgroup_holds_the_default(self, bench: Bench, knob: str) -> None:
        assert bench.backend.read(bench.setting(knob), bench.child) == KNOBS[knob].default

    @pytest.mark.parametrize(("knob", "value"), WRITES)
    def test_what_is_written_is_held_as_quantise_says(self, bench: Bench, knob: str, value: Value) -> None:
        setting = bench.setting(knob)
        expected = bench.backend.quantise(setting, value)
        result = bench.backend.write(setting, value, bench.child)
        if value != frozenset():
            assert result == Applied(expected)
            assert bench.backend.read(setting, bench.child) == expected
        assert isinstance(result, Applied)
        assert bench.backend.quantise(setting, expected) == expected
        assert bench.backend.write(setting, value, bench.child) == result

    @pytest.mark.parametrize(("knob", "value"), WRITES)
    def test_restore_gives_back_what_save_saw(self, bench: Bench, knob: str, value: Value) -> None:
        setting = bench.setting(knob)
        saved = bench.backend.save(setting, bench.child)
        assert saved is not None
        bench.backend.write(setting, value, bench.child)
        assert isinstance(bench.backend.restore(setting, saved, bench.child), Applied)
        assert bench.backend.save(setting, bench.child) == saved

    def test_a_burst_within_its_quota_is_held(self, bench: Bench) -> None:
        quota, burst = bench.setting("cpu.max"), bench.setting("cpu.max.burst")
        bench.backend.write(quota, 50_000.0, bench.child)
        assert bench.backend.write(burst, 20_000.0, bench.child) == Applied(20_000.0)

    def test_an_idle_group_takes_no_weight_until_it_is_not_idle(self, bench: Bench) -> None:
        idle, weight = bench.setting("cpu.idle"), bench.setting("cpu.weight")
        bench.backend.write(idle, 1.0, bench.child)
        assert isinstance(bench.backend.write(weight, 512.0, bench.child), Refused)
        bench.backend.write(idle, 0.0, bench.child)
        assert bench.backend.write(weight, 512.0, bench.child) == Applied(512.0)

    def test_a_refusal_names_the_value(self, bench: Bench) -> None:
        if not bench.enforcing:
            pytest.skip("Unsupported: refusals need a kernel")
        result = bench.backend.write(bench.setting("cpuset.cpus"), frozenset({4095}), bench.child)
        assert isinstance(result, Refused)
        assert "4095" in result.reason

    @pytest.mark.parametrize("knob", ["cpu.weight", "cpu.max", "cpuset.cpus", "memory.max"])
    def test_a_vanished_cgroup_is_an_ordinary_answer(self, bench: Bench, knob: str) -> None:
        setting, nowhere = bench.setting(knob), Handle(f"{bench.top}/nowhere")
        saved = bench.backend.save(setting, bench.child)
        assert saved is not None
        assert bench.backend.read(setting, nowhere) is None
        assert bench.backend.save(setting, nowhere) is None
        assert bench.backend.write(setting, KNOBS[knob].default, nowhere) == Gone()
        assert bench.backend.restore(setting, saved, nowhere) == Gone()


class TreeConformance:
    @pytest.fixture
    def pid(self) -> int:
        """A process that may be moved about."""
        raise NotImplementedError

    @pytest.fixture
    def leave(self) -> Callable[[int], None]:
        """Ends the process, or moves it elsewhere."""
        raise NotImplementedError

    def test_a_made_cgroup_has_a_place_and_an_identity(self, bench: Bench) -> None:
        target, at = workload("ns", "web"), Handle(f"{bench.top}/web")
        assert bench.tree.place(target) is None
        assert bench.tree.identity(at, "cpu") is None
        assert isinstance(bench.tree.make(target, at), Applied)
        assert bench.tree.place(target) == at
        assert bench.tree.identity(at, "cpu") is not None

    def test_making_again_changes_nothing(self, bench: Bench) -> None:
        before = bench.tree.identity(bench.child, "cpu")
        assert isinstance(bench.tree.make(bench.target, bench.child), Applied)
        assert bench.tree.identity(bench.child, "cpu") == before

    def test_a_path_used_again_is_another_cgroup(self, bench: Bench) -> None:
        before = bench.tree.identity(bench.child, "cpu")
        assert isinstance(bench.tree.remove(bench.target), Applied)
        assert bench.tree.identity(bench.child, "cpu") is None
        bench.tree.make(bench.target, bench.child)
        assert bench.tree.identity(bench.child, "cpu") != before

    def test_no_cgroup_is_made_without_its_parent(self, bench: Bench) -> None:
        at = Handle(f"{bench.top}/absent/web")
        assert isinstance(bench.tree.make(group(at.path), at), Refused)

    def test_only_what_is_below_our_top_is_ours(self, bench: Bench) -> None:
        assert bench.tree.owns(Handle(bench.top))
        assert bench.tree.owns(bench.child)
        assert not bench.tree.owns(Handle(f"{bench.top}er"))
        assert not bench.tree.owns(Handle(""))
        assert bench.tree.owns(bench.tree.path_for("standard", "default", "web"))

    def test_a_populated_cgroup_is_not_removed(self, bench: Bench, pid: int, leave: Callable[[int], None]) -> None:
        assert isinstance(bench.tree.join(bench.target, pid), Applied)
        assert isinstance(bench.tree.remove(bench.target), Refused)
        leave(pid)
        assert isinstance(bench.tree.remove(bench.target), Applied)

    def test_a_cgroup_with_children_is_not_removed(self, bench: Bench) -> None:
        assert isinstance(bench.tree.remove(group(bench.top)), Refused)
        assert bench.tree.identity(bench.child, "cpu") is not None

    def test_what_is_gone_is_an_ordinary_answer(self, bench: Bench, pid: int) -> None:
        stranger = workload("ns", "stranger")
        assert bench.tree.remove(stranger) == Gone()
        assert bench.tree.join(stranger, pid) == Gone()
        assert bench.tree.enable(stranger, CONTROLLERS) == Gone()

    def test_enabled_controllers_can_be_withdrawn(self, bench: Bench) -> None:
        if not isinstance(bench.tree, Disables):
            pytest.skip("Unsupported: this tree looks after controllers itself")
        assert (bench.tree.enabled(group(bench.top)) or frozenset()) >= CONTROLLERS
        assert isinstance(bench.tree.enable(bench.target, CONTROLLERS), Applied)
        assert isinstance(bench.tree.disable(bench.target, CONTROLLERS), Applied)
