"""Plugin controllers in their helper process: one that raises, hangs or dies harms nobody but itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.agent.guard import Guard
from j10ce.agent.plugins import PluginProcess, installed
from j10ce.model.snapshot import Snapshot
from j10ce.testing import build

MODULE = """
import os, time
from j10ce.model.knob import Setting
from j10ce.model.plan import Bound, Proposal, Rank

def wish(snap, owner):
    for target, workload in snap.workloads.items():
        used = snap.readings.window(target, "cpu.usage", 60.0).last()
        yield Proposal(Setting(target, "cpu.max"), Bound.AT_MOST, 50000.0, owner, Rank.ADVICE, f"uses {used}")

class Good:
    name = "good"
    def propose(self, snap):
        print("plugins may print")
        return wish(snap, "good")

class Raises:
    name = "raises"
    def propose(self, snap):
        yield from wish(snap, "raises")
        raise ValueError("no idea")

class Hangs:
    name = "hangs"
    def propose(self, snap):
        time.sleep(3600)

class Dies:
    name = "dies"
    def propose(self, snap):
        os._exit(3)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    def install(*names: str) -> Path:
        info = tmp_path / "sample_plugin-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-plugin\nVersion: 1.0\n")
        points = "".join(f"{name} = sample_plugin:{name.title()}\n" for name in names)
        (info / "entry_points.txt").write_text(f"[console_scripts]\nx = y:z\n\n[j10ce.controllers]\n{points}")
        (tmp_path / "sample_plugin.py").write_text(MODULE)
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(__file__).parents[2] / 'src'}")
        return tmp_path

    return install


@pytest.fixture
def helper(package: Callable[..., Path]) -> Iterator[Callable[..., PluginProcess]]:
    made: list[PluginProcess] = []

    def start(*names: str, deadline_s: float = 2.0) -> PluginProcess:
        package(*names)
        made.append(PluginProcess(names, [sys.executable, "-m", "j10ce.agent.plugin_host"], deadline_s=deadline_s))
        return made[-1]

    yield start
    for one in made:
        one.close()


def snap_at(now: float) -> Snapshot:
    web = build.workload("web", profile="ls")
    return replace(build.snapshot(workloads=[web]), now=now, epoch=1)


def until(helper: PluginProcess, done: Callable[[], bool], step_s: float) -> float:
    """Tick with a clock of its own until something has happened; the real time is only waited out."""
    now = 0.0
    for _ in range(2000):
        now += step_s
        helper.ask(snap_at(now))
        if done():
            return now
        time.sleep(0.01)
    raise AssertionError(f"nothing happened: {helper.faults}")


def test_installed_plugins_are_found_without_importing_them(package: Callable[..., Path]) -> None:
    assert installed([str(package("good", "hangs"))]) == ["good", "hangs"]


def test_proposals_come_back_with_their_reasons(helper: Callable[..., PluginProcess]) -> None:
    one = helper("good")
    until(one, lambda: "good" in one.proposals, step_s=0.001)
    (proposal,) = one.proposals["good"]
    assert (proposal.setting.knob, proposal.value, proposal.owner) == ("cpu.max", 50000.0, "good")


def test_one_that_raises_is_told_and_the_others_go_on(helper: Callable[..., PluginProcess]) -> None:
    one = helper("raises", "good")
    now = until(one, lambda: "good" in one.proposals and "raises" in one.faults, step_s=0.001)
    assert "no idea" in one.faults["raises"]
    guards = {c.name: Guard(c) for c in one.controllers()}
    assert guards["raises"].propose(snap_at(now)) == ()
    assert guards["good"].propose(snap_at(now)) != ()


@pytest.mark.parametrize("bad", ["hangs", "dies"])
def test_one_that_hangs_or_dies_is_benched_and_the_others_go_on(helper: Callable[..., PluginProcess], bad: str) -> None:
    one = helper(bad, "good", deadline_s=1.0)
    until(one, lambda: "good" in one.proposals, step_s=0.01)
    assert one.faults[bad]
    assert one.restarts >= 1
