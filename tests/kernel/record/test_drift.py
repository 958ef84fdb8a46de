"""Someone else's writes are noticed, answered three times in ten minutes, and then yielded to."""

from __future__ import annotations

import pytest

from j10ce.model.knob import Setting, Value, group
from j10ce.model.plan import Applied, Refused
from tests.kernel.rig import DB, WEB, Rig

WEIGHT = Setting(WEB.target, "cpu.weight")


def contested(rig: Rig, rounds: int, *, apart_s: float = 60.0) -> list[object]:
    """Each round someone else writes, we notice, and the ring writes ours again."""
    results: list[object] = []
    for _ in range(rounds):
        rig.meddle(WEB.target, "cpu.weight", 100.0)
        rig.now += apart_s
        rig.kernel.read_now([WEB.target])
        results.append(rig.write(WEB.target, "cpu.weight", 512.0))
    return results


def built(rig: Rig) -> Rig:
    rig.build()
    rig.write(WEB.target, "cpu.weight", 512.0)
    return rig


def test_a_quiet_machine_shows_no_drift(rig: Rig) -> None:
    assert built(rig).sweep() == []
    assert rig.kernel.drift() == []


def test_a_foreign_write_is_found_within_thirty_seconds(rig: Rig) -> None:
    built(rig).meddle(WEB.target, "cpu.weight", 100.0)
    collected = []
    for _ in range(31):
        collected += rig.kernel.sweep(rig.now)
        rig.now += 1.0
    assert [(d.setting, d.ours, d.theirs) for d in collected] == [(WEIGHT, 512.0, 100.0)]
    assert rig.kernel.settings[WEIGHT] == 100.0


def test_no_tick_reads_more_than_its_share(rig: Rig) -> None:
    built(rig).kernel.sweep(rig.now)
    total = len(rig.kernel.settings)
    assert len(rig.kernel._held.due(rig.now + 1.0, 1000)) <= total // 30 + 1
    assert len(rig.kernel._held.due(rig.now + 3600.0, 7)) == 7


def test_every_setting_has_its_turn(rig: Rig) -> None:
    built(rig)
    seen: set[Setting] = set()
    for second in range(31):
        seen.update(rig.kernel._held.due(rig.now + second, 1000))
    assert seen == rig.kernel.settings.keys()


def test_someone_known_to_have_written_is_noticed_at_once(rig: Rig) -> None:
    built(rig).meddle(WEB.target, "cpu.weight", 100.0)
    (drift,) = rig.kernel.read_now([WEB.target])
    assert drift.theirs == 100.0
    assert rig.kernel.drift() == [drift]


def test_a_contested_setting_is_looked_at_in_every_sweep(rig: Rig) -> None:
    contested(built(rig), 1)
    rig.kernel.sweep(rig.now)
    rig.meddle(WEB.target, "cpu.weight", 77.0)
    assert [d.theirs for d in rig.kernel.sweep(rig.now)] == [77.0], "no time has passed: nothing else is due"


@pytest.mark.parametrize("knob", ["memory.min", "memory.low"])
def test_a_group_that_loses_its_cover_is_seen_in_every_sweep(rig: Rig, knob: str) -> None:
    rig.adopt()
    rig.kernel.track([DB])
    rig.write(group("system.slice"), knob, 4096.0)
    rig.kernel.sweep(rig.now)
    rig.meddle(group("system.slice"), knob, 0.0)
    assert [(d.setting.target, d.theirs) for d in rig.kernel.sweep(rig.now)] == [(group("system.slice"), 0.0)]


@pytest.mark.parametrize(
    ("knob", "value"), [("memory.max", 8192.0), ("cpu.max", 20_000.0), ("cpuset.cpus", frozenset({0}))]
)
def test_a_limit_that_someone_puts_on_a_group_is_known_at_once(rig: Rig, knob: str, value: Value) -> None:
    rig.adopt()
    rig.kernel.track([DB])
    rig.meddle(group("system.slice"), knob, value)
    assert rig.kernel.look_above(rig.now) == [], "it was never ours"
    assert rig.kernel.settings[Setting(group("system.slice"), knob)] == value


def test_a_setting_that_we_never_wrote_is_followed_silently(rig: Rig) -> None:
    rig.adopt(cpu__weight=2048.0)
    rig.kernel.track([DB])
    rig.meddle(DB.target, "cpu.weight", 300.0)
    assert rig.kernel.read_now([DB.target]) == []
    assert rig.kernel.settings[Setting(DB.target, "cpu.weight")] == 300.0


def test_a_contested_setting_is_yielded_after_three_answers(rig: Rig) -> None:
    *answered, last = contested(built(rig), 4)
    assert answered == [Applied(512.0)] * 3
    assert isinstance(last, Refused)
    assert last.reason.startswith("yielded: someone else set cpu.weight to 100")
    (drift,) = rig.kernel.drift()
    assert drift.yielded
    assert drift.reasserted == 3


def test_a_yielded_setting_stays_theirs(rig: Rig) -> None:
    contested(built(rig), 4)
    rig.now += 3600.0
    assert isinstance(rig.write(WEB.target, "cpu.weight", 512.0), Refused)
    assert rig.held(WEB.target, "cpu.weight") == 100.0


def test_an_operator_can_claim_it_again(rig: Rig) -> None:
    contested(built(rig), 4)
    rig.kernel.forgive(WEIGHT)
    assert rig.write(WEB.target, "cpu.weight", 512.0) == Applied(512.0)


def test_it_is_ours_again_when_they_put_it_back(rig: Rig) -> None:
    contested(built(rig), 4)
    rig.meddle(WEB.target, "cpu.weight", 512.0)
    rig.kernel.read_now([WEB.target])
    assert rig.kernel.drift() == []


def test_rare_meddling_is_answered_each_time(rig: Rig) -> None:
    assert contested(built(rig), 6, apart_s=300.0) == [Applied(512.0)] * 6


def test_changes_of_our_own_mind_are_no_contest(rig: Rig) -> None:
    built(rig)
    assert [rig.write(WEB.target, "cpu.weight", 512.0 + n) for n in range(0, 100, 20)][-1] == Applied(594.0)
    assert rig.kernel.drift() == []


def test_other_settings_are_not_drawn_in(rig: Rig) -> None:
    contested(built(rig), 4)
    assert rig.write(WEB.target, "memory.low", 4096.0) == Applied(4096.0)


def test_an_old_contest_is_no_longer_reported(rig: Rig) -> None:
    contested(built(rig), 1)
    assert rig.kernel.drift() != []
    rig.now += 601.0
    assert rig.kernel.drift() == []


def test_a_workload_that_left_is_no_contest(rig: Rig) -> None:
    contested(built(rig), 4)
    rig.kernel.track([])
    assert rig.kernel.drift() == []


def test_what_its_maker_wrote_anew_is_no_contest_and_goes_back_in_the_end(rig: Rig) -> None:
    rig.adopt(cpu__weight=2048.0)
    rig.kernel.track([DB])
    rig.write(DB.target, "cpu.weight", 4096.0)
    rig.meddle(DB.target, "cpu.weight", 3072.0)
    rig.kernel.accept([DB.target])
    assert rig.kernel.drift() == []
    assert rig.write(DB.target, "cpu.weight", 4096.0) == Applied(4096.0)
    rig.kernel.revert()
    assert rig.held(DB.target, "cpu.weight") == 3072.0


def test_what_is_conceded_goes_back_and_is_counted(rig: Rig) -> None:
    rig.adopt(cpu__weight=2048.0)
    rig.kernel.track([DB])
    for _ in range(3):
        rig.write(DB.target, "cpu.weight", 4096.0)
        rig.meddle(DB.target, "cpu.weight", 3072.0)
        (drift,) = rig.kernel.read_now([DB.target])
        rig.kernel.concede(drift.setting)
    assert rig.write(DB.target, "cpu.weight", 4096.0) == Applied(4096.0)
    rig.meddle(DB.target, "cpu.weight", 3072.0)
    rig.kernel.read_now([DB.target])
    assert isinstance(rig.write(DB.target, "cpu.weight", 4096.0), Refused), "three answers, whoever is right"
    rig.kernel.revert(force=True)
    assert rig.held(DB.target, "cpu.weight") == 3072.0
