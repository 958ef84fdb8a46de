"""Plugin controllers in their helper process: one that raises, hangs or dies harms nobody but itself."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.agent.plugins.installed import installed
from j10ce.agent.plugins.process import PluginProcess
from j10ce.agent.ring.contained import Contained
from j10ce.host.child import python
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

class Floods:
    name = "floods"
    def propose(self, snap):
        # The helper's own way out is the first descriptor above the standard ones; an empty answer is a valid frame.
        frame = bytes.fromhex("0000000180") * 100_000
        while True:
            os.write(3, frame)

class Masks:
    name = "masks"
    def propose(self, snap):
        return [p for n in range(50) for p in wish(snap, f"someone-{n}")]

class Talks:
    name = "talks"
    def propose(self, snap):
        target = next(iter(snap.workloads))
        return [Proposal(Setting(target, "cpu.max"), Bound.AT_MOST, 50000.0 + n, "talks", Rank.ADVICE, "x" * 1000)
                for n in range(800)]
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
        monkeypatch.syspath_prepend(tmp_path)
        return tmp_path

    return install


@pytest.fixture
def helper(package: Callable[..., Path]) -> Iterator[Callable[..., PluginProcess]]:
    made: list[PluginProcess] = []

    def start(*names: str, deadline_s: float = 2.0) -> PluginProcess:
        package(*names)
        made.append(PluginProcess(names, python("j10ce.agent.plugins.child"), deadline_s=deadline_s))
        return made[-1]

    yield start
    for one in made:
        one.close()
        assert eventually(lambda one=one: reaped(one))  # type: ignore[misc]


def reaped(one: PluginProcess) -> bool:
    """Whoever was killed has ended, and was waited for."""
    return all(process.poll() is not None for process in one._dying)


def eventually(done: Callable[[], bool]) -> bool:
    for _ in range(6000):
        if done():
            return True
        time.sleep(0.01)
    return False


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
    assert installed(search=[str(package("good", "hangs"))]).keys() == {"good", "hangs"}


def test_proposals_come_back_with_their_reasons(helper: Callable[..., PluginProcess]) -> None:
    one = helper("good")
    until(one, lambda: "good" in one.proposals, step_s=0.001)
    (proposal,) = one.proposals["good"]
    assert (proposal.setting.knob, proposal.value, proposal.owner) == ("cpu.max", 50000.0, "good")


def test_a_plugin_speaks_under_its_own_name_however_many_it_gives_itself(helper: Callable[..., PluginProcess]) -> None:
    """Advice is judged owner by owner: a plugin with a thousand names would hold up the ring."""
    one = helper("masks")
    until(one, lambda: "masks" in one.proposals, 0.001)
    assert {p.owner for p in one.proposals["masks"]} == {"masks"}


def test_one_that_raises_is_reported_and_the_others_go_on(helper: Callable[..., PluginProcess]) -> None:
    one = helper("raises", "good")
    now = until(one, lambda: "good" in one.proposals and "raises" in one.faults, step_s=0.001)
    assert "no idea" in one.faults["raises"]
    guards = {c.name: Contained(c) for c in one.controllers()}
    assert guards["raises"].propose(snap_at(now)) == ()
    assert guards["good"].propose(snap_at(now)) != ()


@pytest.mark.parametrize("bad", ["hangs", "dies"])
def test_one_that_hangs_or_dies_is_benched_and_the_others_go_on(helper: Callable[..., PluginProcess], bad: str) -> None:
    one = helper(bad, "good", deadline_s=1.0)
    until(one, lambda: "good" in one.proposals, step_s=0.01)
    assert one.faults[bad]
    assert one.restarts >= 1


def test_one_that_writes_without_end_is_benched_and_holds_nobody_up(helper: Callable[..., PluginProcess]) -> None:
    one = helper("floods", "good", deadline_s=60.0)
    within(lambda: until(one, lambda: "good" in one.proposals, step_s=0.01))
    assert "at once" in one.faults["floods"]


def test_a_long_answer_is_there_at_the_next_tick(helper: Callable[..., PluginProcess]) -> None:
    """Longer than a pipe is by default, so that the helper would wait for us in the middle of it."""
    one = helper("talks", deadline_s=60.0)
    until(one, lambda: "talks" in one.proposals, step_s=0.001)
    assert len(one.proposals["talks"]) == 800


def test_one_that_cannot_die_holds_nobody_up_and_is_reaped_later(helper: Callable[..., PluginProcess]) -> None:
    one = helper("hangs", "good", deadline_s=1.0)
    one.ask(snap_at(1.0))
    stuck = one._process
    assert stuck is not None
    stuck.kill = lambda: None  # type: ignore[method-assign]  # as on a mount that hangs
    within(lambda: until(one, lambda: "good" in one.proposals, step_s=0.01))
    assert stuck.poll() is None
    subprocess.Popen.kill(stuck)
    assert eventually(lambda: one.ask(snap_at(time.monotonic())) is None and stuck.returncode is not None)


def test_helpers_that_cannot_die_do_not_pile_up(
    helper: Callable[..., PluginProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = helper("hangs", deadline_s=1.0)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "kill", lambda self: None)
        now = until(one, lambda: len(one._dying) >= 3, step_s=1.0)
        for n in range(1, 1000):
            one.ask(snap_at(now + n))
    assert (len(one._dying), one._process) == (3, None)
    for process in one._dying:
        process.kill()


def within(work: Callable[[], object], seconds: float = 60.0) -> None:
    """Fails instead of hanging for ever."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive()
