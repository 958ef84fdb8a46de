from j10ce_night_shift import NightShift

from j10ce.testing.build import entitlement, snapshot, workload

NOON, MIDNIGHT = 12 * 3600.0, 0.0
CRUNCH = workload("crunch", profile="be")


def at(wall: float) -> list[str]:
    snap = snapshot(entitlement(CRUNCH, tier="besteffort"), workloads=[CRUNCH], wall=wall)
    return [p.setting.target for p in NightShift().propose(snap)]


def test_caps_best_effort_by_day() -> None:
    assert at(NOON) == [CRUNCH.target]


def test_lets_go_at_night() -> None:
    assert at(MIDNIGHT) == []
