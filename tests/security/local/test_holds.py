"""What users of the same machine try with holds on the agent's socket: each other's, and more than anyone needs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from j10ce.agent.cache import Cache
from j10ce.agent.report.applied_changes import Trail
from j10ce.agent.report.usage import Usage
from j10ce.agent.ring import holds
from j10ce.agent.ring.holds import HoldRequest
from j10ce.agent.socket.admission import Caller
from j10ce.agent.socket.holding import Holding
from j10ce.agent.sync.node import LocalNode
from j10ce.errors import Busy, Denied, Finding, Invalid
from j10ce.model.knob import Value
from j10ce.policy.document.document import NodeDocument
from j10ce.testing import build
from tests.agent.ring.test_runner import Scene, running
from tests.agent.whole_ring import Ring

NAMELESS = 4_000_000_000  # beyond what anyone gives to a user: whoever has it is told by its number


async def test_what_is_left_of_a_user_s_hold_is_his_over_a_restart(tmp_path: Path) -> None:
    asked = HoldRequest(target="workload/default/web", knobs=("cpu.max", "cpu.weight"), for_seconds=60, why="test")
    alice, bob = Caller(1, NAMELESS, NAMELESS), Caller(1, NAMELESS + 1, NAMELESS + 1)
    async with running(tmp_path) as scene:
        await scene.operations.hold(asked, alice)
        await scene.operations.release(asked.target, frozenset({"cpu.max"}), alice)
        again = Holding(scene.shell, scene.operations.cache)
        with pytest.raises(Denied, match=f"is held, by uid {NAMELESS} until"):
            await again.release(asked.target, frozenset(), bob)
        assert (await again.release(asked.target, frozenset(), alice))["released"] == ["cpu.weight"]


async def test_holds_of_one_user_and_of_all_users_are_bounded_and_root_s_are_not(tmp_path: Path) -> None:
    async def made(scene: Scene, uid: int, count: int) -> None:
        for n in range(count):
            asked = HoldRequest(target=f"workload/u{uid}/w{n}", knobs=("cpu.max",), for_seconds=60, why="test")
            await scene.operations.hold(asked, Caller(1, uid, uid))

    async with running(tmp_path) as scene:
        for uid in range(NAMELESS, NAMELESS + 4):
            await made(scene, uid, 64)
            with pytest.raises(Busy, match=f"64 holds of uid {uid} are in force"):
                await made(scene, uid, 65)
        with pytest.raises(Busy, match="256 holds of all users are in force"):
            await made(scene, 1005, 1)
        await made(scene, 0, 70)
        await scene.operations.release(f"workload/u{NAMELESS}/w0", frozenset(), Caller(1, NAMELESS, NAMELESS))
        await made(scene, 1005, 1)


async def test_holds_that_come_and_go_fill_no_memory(tmp_path: Path) -> None:
    """Names of ended holds are remembered, for a control plane that may still list them."""
    asked = HoldRequest(target="workload/default/web", knobs=("cpu.max",), for_seconds=60, why="test")
    async with running(tmp_path) as scene:
        listed = (await scene.operations.hold(asked, Caller(1, 0, 0)))["name"]
        agent = scene.ring.agent
        agent.obey(replace(agent.document, holds=agent.holds))
        await scene.operations.release(asked.target, frozenset(), Caller(1, 0, 0))
        for n in range(1010):
            one = replace(asked, target=f"workload/default/w{n}")
            await scene.operations.hold(one, Caller(1, NAMELESS, NAMELESS))
            await scene.operations.release(one.target, frozenset(), Caller(1, NAMELESS, NAMELESS))
        assert len(agent.released) <= 1001
        assert listed in agent.released
        assert scene.operations.holds() == ()


CPUS = HoldRequest(target="workload/default/web", knobs=("cpuset.cpus",), for_seconds=60, why="test")


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(replace(CPUS, knobs=("cpuset.cpus",) * 1_000, value="0"), id="one knob many times"),
        pytest.param(replace(CPUS, value=",".join(["0-8191"] * 100)), id="the same CPUs many times"),
    ],
)
async def test_a_hold_that_would_be_read_for_minutes_is_refused(tmp_path: Path, asked: HoldRequest) -> None:
    async with running(tmp_path) as scene:
        with pytest.raises(Invalid, match=r"named twice|more than 8192 CPUs"):
            await scene.operations.hold(asked, Caller(1, 0, 0))


def test_a_value_that_is_held_is_read_when_it_arrives_and_not_at_every_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(knob: str, text: str) -> Value | Finding:
        read.append(text)
        return read_value(knob, text)

    read_value = holds.read_value
    monkeypatch.setattr(holds, "read_value", counted)
    ring = Ring(tmp_path)
    ring.agent.hold([build.hold("workload/default/web", "cpuset.cpus", value="0-1")])
    reports = [ring.agent.tick(ring.instant(1.0)) for _ in range(5)]
    assert read == ["0-1"]
    assert [[h.value for h in report.held] for report in reports] == [[frozenset({0, 1})]] * 5
    ring.agent.hold([build.hold("workload/default/web", "cpuset.cpus", value="2")])
    assert [h.value for h in ring.agent.tick(ring.instant(1.0)).held] == [frozenset({2})]
    ring.agent.hold([])
    assert ring.agent.tick(ring.instant(1.0)).held == ()


async def test_a_hold_that_has_expired_is_not_sent_to_the_control_plane(tmp_path: Path) -> None:
    """It may have ended while the agent was down, or the control plane away."""
    over = build.hold("workload/default/web", "cpu.max", name="over", expires=build.WALL - 1)
    still = build.hold("workload/default/web", "cpu.weight", name="still")
    agent = SimpleNamespace(holds=(over, still), released=frozenset())
    shell = SimpleNamespace(agent=agent, clock=SimpleNamespace(read=lambda: SimpleNamespace(wall=build.WALL)))
    cache = Cache(tmp_path, tmp_path)
    usage, trail = Usage(cache.histories(), cache.keep_histories), Trail(NodeDocument(node="n"))
    assert LocalNode(shell, cache, usage, trail).local_holds() == ((still,), frozenset())  # type: ignore[arg-type]
