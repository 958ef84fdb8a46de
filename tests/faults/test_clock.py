"""The wall clock is set back and forth: only what is due by it moves, and control goes by the other clock."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.agent.ring import holds
from j10ce.agent.ring.holds import HoldRequest
from j10ce.errors import Invalid
from j10ce.model.knob import Setting, workload
from j10ce.model.workload import Handle, Workload
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.profiles import builtin
from j10ce.testing import build
from j10ce.testing.clock import FakeClock
from tests.agent.whole_ring import Ring

WEB = workload("default", "web")
WEIGHT = Setting(WEB, "cpu.weight")
YEAR = 365 * 86400.0
RESOLVED = 31.0  # entitlements are derived again at least every 30 s


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    return Ring(tmp_path)


def web(**labels: str) -> Workload:
    return replace(build.workload("web", profile="burstable", labels=labels), handle=Handle(), pids=(1,))


def floor(ring: Ring) -> int:
    assert ring.agent.resolution is not None
    return ring.agent.resolution.entitlements[WEB].floor.cpu


def held(ring: Ring) -> bool:
    return WEIGHT in {h.setting for h in ring.tick().held}


def test_a_hold_ends_when_its_time_has_come_by_the_wall_clock(ring: Ring) -> None:
    ring.arrive(web())
    ring.agent.hold([build.hold(WEB, "cpu.weight", expires=ring.wall + 600)])
    assert held(ring)
    ring.wall -= YEAR  # a clock that was wrong before it was set
    assert held(ring)
    ring.wall += YEAR + 601
    assert not held(ring)
    ring.wall -= 601
    assert held(ring)


def test_a_hold_made_while_the_clock_is_wrong_ends_by_the_clock_it_was_made_with() -> None:
    clock = FakeClock()
    clock.jump(-YEAR)
    made = holds.from_request(
        HoldRequest(target=WEB, knobs=("cpu.max",), for_seconds=60, why="test"), clock.read().wall
    )
    assert holds.live([made], clock.read().wall) == (made,)
    clock.jump(YEAR)
    assert holds.live([made], clock.read().wall) == ()


@pytest.mark.parametrize("seconds", [0.0, -1.0, 31 * 86400.0, float("inf"), float("nan")])
def test_a_hold_without_a_sensible_end_is_refused(seconds: float) -> None:
    request = HoldRequest(target=WEB, knobs=("cpu.max",), for_seconds=seconds, why="test")
    with pytest.raises(Invalid, match="out of range"):
        holds.from_request(request, build.WALL)


def test_a_promise_with_a_ttl_follows_the_wall_clock_both_ways(ring: Ring) -> None:
    promise = build.reservation("floor", labels={"app": "web"}, ttl="10m", cpu="1")
    ring.agent.obey(NodeDocument(node="node", profiles=builtin(), policies=(promise,)))
    ring.arrive(web(app="web"))
    assert floor(ring) == 1000
    ring.wall += YEAR
    ring.tick()
    assert floor(ring) == 0  # at once: its time is over
    ring.wall -= YEAR
    ring.tick(RESOLVED)
    assert floor(ring) == 1000


def test_a_promise_without_a_ttl_does_not_care(ring: Ring) -> None:
    promise = build.reservation("floor", labels={"app": "web"}, cpu="1")
    ring.agent.obey(NodeDocument(node="node", profiles=builtin(), policies=(promise,)))
    ring.arrive(web(app="web"))
    before = ring.fake.settings()
    for jump in (YEAR, -20 * YEAR, 3600.0, -ring.wall + 1):  # the last one: 1970
        ring.wall += jump
        ring.tick(RESOLVED)
        assert floor(ring) == 1000
        assert ring.fake.settings() == before


def test_a_jump_forward_of_the_monotonic_clock_is_one_long_pause(ring: Ring) -> None:
    """As after a suspended machine: nobody is punished for an hour without ticks."""
    ring.arrive(web())
    ring.tick()
    before = ring.fake.settings()
    ring.now += 3600
    ring.tick()
    assert ring.fake.settings() == before
