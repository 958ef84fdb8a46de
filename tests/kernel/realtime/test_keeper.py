"""The keeper's step: commands of the agent, its silence, its end."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from j10ce.kernel.realtime import wire
from j10ce.kernel.realtime.keeper import RealtimeKeeper, run
from j10ce.kernel.realtime.law import HEARING_S, TICK_S
from j10ce.kernel.realtime.machine import FAIR, OURS
from j10ce.testing.beside.fake_machine import FakeMachine

WEB = "/cg/web"


class Rig:
    def __init__(self) -> None:
        self.agent, keeper = wire.pair()
        self.machine, self.now = FakeMachine(), 0.0
        self.keeper = RealtimeKeeper(keeper, self.machine, 0.0, [0, 1])
        self.kept = keeper

    def keep(self, rate: str = "0.5", top: str = WEB) -> None:
        wire.send(self.agent, wire.KEEP, top, rate, "0.9", *self.machine.place(top))

    def pass_by(self, seconds: float, *, beating: bool = True) -> None:
        end = self.now + seconds
        while self.now < end - 1e-9:
            if beating:
                wire.send(self.agent, wire.BEAT)
            span = self.keeper.step(self.now)
            self.machine.advance(span)
            self.now += span

    def said(self, command: str) -> list[list[str]]:
        return [fields for name, *fields in wire.receive(self.agent) if name == command]


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.agent.close()
    made.kept.close()


def test_what_the_agent_asks_for_is_kept_and_reported(rig: Rig) -> None:
    thread = rig.machine.spawn(WEB, wants=0.1)
    rig.keep()
    rig.pass_by(0.5)
    assert rig.machine.threads_of[thread].policy == OURS
    assert rig.said(wire.STATE)[-1] == [WEB, "1", "0", ""]


def test_what_is_dropped_is_fair_before_it_is_answered(rig: Rig) -> None:
    thread = rig.machine.spawn(WEB, wants=0.1)
    rig.keep()
    rig.pass_by(0.2)
    wire.send(rig.agent, wire.DROP, WEB)
    rig.pass_by(TICK_S)
    assert rig.machine.threads_of[thread].policy == FAIR
    assert rig.said(wire.DROPPED) == [[WEB]]


def test_when_the_agent_is_silent_all_are_fair_within_a_tenth_of_a_second(rig: Rig) -> None:
    thread = rig.machine.spawn(WEB, wants=0.1)
    rig.keep()
    rig.pass_by(0.2)
    rig.pass_by(0.1, beating=False)
    assert rig.machine.threads_of[thread].policy == FAIR


def test_an_agent_that_was_held_up_for_a_moment_is_served_again(rig: Rig) -> None:
    thread = rig.machine.spawn(WEB, wants=0.1)
    rig.keep()
    rig.pass_by(0.2)
    rig.pass_by(0.4, beating=False)
    rig.pass_by(0.2)
    assert rig.machine.threads_of[thread].policy == OURS


def test_after_a_second_of_silence_the_keeper_ends(rig: Rig) -> None:
    rig.keep()
    rig.pass_by(0.1)
    with pytest.raises(wire.Ended):
        rig.pass_by(HEARING_S + 0.2, beating=False)


def test_an_agent_that_is_gone_leaves_nothing_real_time(rig: Rig) -> None:
    thread = rig.machine.spawn(WEB, wants=0.1)
    rig.keep()
    rig.pass_by(0.2)
    rig.agent.shutdown(socket.SHUT_RDWR)
    run(rig.keeper, clock=lambda: rig.now, sleep=lambda _: None)
    assert rig.machine.threads_of[thread].policy == FAIR


def test_a_workload_that_is_gone_is_said_to_be_dropped(rig: Rig) -> None:
    rig.keep()
    rig.pass_by(0.1)
    del rig.machine.used[WEB]
    rig.pass_by(TICK_S)
    assert rig.said(wire.DROPPED) == [[WEB]]
    assert rig.keeper.wards == {}


def test_another_rate_counts_from_the_next_look(rig: Rig) -> None:
    thread = rig.machine.spawn(WEB, wants=0.1)
    rig.keep()
    rig.pass_by(0.2)
    rig.keep("0")
    rig.pass_by(0.1)
    assert rig.machine.threads_of[thread].policy == FAIR


def test_a_path_with_a_newline_or_without_utf_8_comes_over_unchanged() -> None:
    here, there = wire.pair()
    with here, there:
        wire.send(here, wire.KEEP, "a\nb", "\udcff")
        assert list(wire.receive(there)) == [[wire.KEEP, "a\nb", "\udcff"]]
