"""The controller in a closed loop with a simulated machine: who is named, what is done, and what is left alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import pytest
from msgspec.structs import replace

from j10ce.control.interference.interference import Interference
from j10ce.control.interference.trial import TRIAL_S
from j10ce.model.kinds import Tier
from j10ce.model.knob import NODE, PERIOD_US, Setting
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot
from j10ce.testing.build import entitlement, workload
from tests.control.interference.mixes import ENTITLED, VICTIM, Machine, Mix

STEP = Mix(0, "step")  # its antagonist is best effort
Mode = Literal["off", "observe", "act"]


class Loop:
    """One controller on one machine, whose caps are in force one second later."""

    def __init__(self, mix: Mix = STEP, *, mode: Mode = "act") -> None:
        self.machine = Machine(mix)
        self.controller = Interference(Interference.Config())
        self.mode = mode
        self.t = 0

    def seconds(self, count: int) -> Iterator[list[Proposal]]:
        for _ in range(count):
            self.machine.second(self.t)
            proposals = list(self.controller.propose(self.look()))
            quotas = [p.value for p in proposals if p.setting == Setting(self.machine.antagonist, "cpu.max")]
            self.machine.cap = min((float(q) / PERIOD_US for q in quotas if isinstance(q, float)), default=math.inf)
            self.t += 1
            yield proposals

    def look(self) -> Snapshot:
        return self.machine.snapshot(self.t, self.mode)

    def until(self, action: str, most: int = 600) -> None:
        """Until what is done about the first accusation begins with that, or is about it."""
        for _ in self.seconds(most):
            if self.controller.seen and action in self.controller.seen[0].action:
                return
        pytest.fail(f"never: {action}; {self.controller.seen}")


def antagonist(mix: Mix) -> Tier:
    target = Machine(mix).antagonist
    return next(e.tier for e in ENTITLED if e.target == target)


BESTEFFORT_STEP = next(Mix(seed, "step") for seed in range(100) if antagonist(Mix(seed, "step")) is Tier.BESTEFFORT)


def test_by_default_it_names_and_does_nothing() -> None:
    loop = Loop(mode="observe")
    proposals = [p for said in loop.seconds(180) for p in said]
    assert proposals == []
    (first, *_) = loop.controller.seen
    assert (first.victim, f"workload/{first.antagonist}") == ("default/victim", loop.machine.antagonist)
    assert first.action == "observed"


def test_off_means_off() -> None:
    loop = Loop(mode="off")
    assert [p for said in loop.seconds(180) for p in said] == []
    assert loop.controller.seen == ()


def test_the_mildest_cap_that_helps_is_kept_with_the_numbers_as_reason() -> None:
    loop = Loop(BESTEFFORT_STEP)
    loop.until("on trial")
    loop.until("it helps; kept")
    (proposal,) = next(loop.seconds(1))
    assert proposal.setting == Setting(loop.machine.antagonist, "cpu.max")
    assert (proposal.bound, proposal.rank, proposal.owner) == (Bound.AT_MOST, Rank.POLICY, "interference")
    assert "default/victim waits" in proposal.reason
    assert "correlation" in proposal.reason
    assert "kept since it helps" in proposal.reason


def test_a_reason_stays_the_same_from_tick_to_tick() -> None:
    loop = Loop(BESTEFFORT_STEP)
    loop.until("it helps; kept")
    assert len({p for said in loop.seconds(20) for p in said}) == 1


def test_what_does_not_help_is_undone_and_left_for_a_while() -> None:
    loop = Loop(BESTEFFORT_STEP)
    loop.machine.harmless = True
    loop.until("on trial")
    caps = [p.value for said in loop.seconds(int(3 * TRIAL_S) + 5) for p in said]
    assert len(set(caps)) == 3
    assert caps == sorted(caps, reverse=True)
    assert [p for said in loop.seconds(60) for p in said] == []


def test_it_ends_with_the_victim() -> None:
    loop = Loop(BESTEFFORT_STEP)
    loop.until("it helps; kept")
    snap = loop.look()
    alone = replace(snap, entitlements={t: e for t, e in snap.entitlements.items() if t != VICTIM.target})
    assert list(loop.controller.propose(alone)) == []
    assert loop.controller.seen == ()


@pytest.mark.parametrize(
    ("tier", "lacking", "why"),
    [
        pytest.param("sensitive", (), "its tier sensitive is not below sensitive", id="an equal"),
        pytest.param("system", (), "its tier system is not below sensitive", id="the system"),
        pytest.param("besteffort", ("cpu.max",), "cpu.max is missing here", id="no knob"),
    ],
)
def test_who_is_named_and_left_alone(tier: str, lacking: tuple[str, ...], why: str) -> None:
    loop = Loop()
    mine = loop.machine.antagonist
    changed = entitlement(loop.look().workloads[mine], tier=tier)
    for _ in range(180):
        loop.machine.second(loop.t)
        snap = loop.look()
        support = {k: s._replace(ok=False) if k in lacking else s for k, s in snap.support.items()}
        entitlements = {**snap.entitlements, mine: changed}
        assert list(loop.controller.propose(replace(snap, entitlements=entitlements, support=support))) == []
        loop.t += 1
    assert loop.controller.seen[0].action == f"left alone: {why}"


@pytest.mark.parametrize("throttled", [0.0, 0.5], ids=["no quota", "its own quota stops it"])
def test_whom_its_own_quota_stops_suffers_from_nobody(throttled: float) -> None:
    loop = Loop(mode="observe")
    for _ in range(180):
        loop.machine.book.add(float(loop.t), VICTIM.target, "cpu.throttled", throttled)
        next(loop.seconds(1))
    assert bool(loop.controller.seen) is (throttled == 0.0)


def test_a_cap_on_memory_follows_what_is_in_use_until_it_is_in_force() -> None:
    mix = next(Mix(seed, "memory") for seed in range(100) if antagonist(Mix(seed, "memory")) is Tier.BESTEFFORT)
    loop = Loop(mix)
    setting = Setting(loop.machine.antagonist, "memory.high")
    values: dict[Setting, float] = {}
    for _ in range(200):
        loop.machine.second(loop.t)
        snap = replace(loop.look(), settings={**loop.look().settings, **values})
        held = snap.readings.window(setting.target, "memory.current", 5.0).last() or 0.0
        for proposal in loop.controller.propose(snap):
            assert proposal.setting == setting
            assert isinstance(proposal.value, float)
            if setting not in values:
                assert proposal.value >= held
            elif proposal.value != values[setting]:
                pytest.fail("it moved while it was in force")
            values[setting] = proposal.value
        loop.t += 1
    assert values


def test_those_who_make_themselves_wait_hide_nobody_else() -> None:
    """Any pod may have a thousand threads, which wait for each other; four of those were all that was looked at."""
    loop, loud = Loop(mode="observe"), [workload(f"loud{n}") for n in range(4)]
    louder = {w.target: entitlement(w, tier="sensitive") for w in loud}
    victims = set[str]()
    for _ in range(240):
        for w in loud if loop.t % 2 == 0 else ():
            loop.machine.book.add(float(loop.t), w.target, "cpu.pressure", 0.99)
        loop.machine.second(loop.t)
        snap = loop.look()
        here = {**snap.workloads, **{w.target: w for w in loud}}
        list(loop.controller.propose(replace(snap, workloads=here, entitlements={**snap.entitlements, **louder})))
        victims |= {f"workload/{report.victim}" for report in loop.controller.seen}
        loop.t += 1
    assert VICTIM.target in victims


@pytest.mark.parametrize("of_node", [0.0, 0.5], ids=["nobody on the machine waits", "somebody does"])
def test_what_the_machine_does_not_have_no_workload_has(of_node: float) -> None:
    loop = Loop(mode="observe")
    for _ in range(180):
        loop.machine.book.add(float(loop.t), NODE, "cpu.pressure", of_node)
        next(loop.seconds(1))
    assert bool(loop.controller.seen) is (of_node > 0)
