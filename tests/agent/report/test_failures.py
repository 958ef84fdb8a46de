"""A refused write is reported for the objects that asked for it, and of no others."""

from __future__ import annotations

import pytest

from j10ce.agent.report.report import failing
from j10ce.agent.ring.ring import Report
from j10ce.daemon.clock import Instant
from j10ce.model.knob import Setting, TargetId
from j10ce.model.plan import Applied, Change, Make, Outcome, Plan, Refused, ValueChange
from j10ce.model.resource import NOTHING
from j10ce.model.workload import Source
from j10ce.policy.entitlement.ledger import Ledger
from j10ce.policy.entitlement.resolve import Resolution
from j10ce.testing.build import WALL, entitlement, snapshot, workload

WEB = workload("web")
SOURCES = (
    Source("profile", "QoSProfile/ls", "label"),
    Source("floor.memory", "MinimalReservationPolicy/default/db", "selector"),
)


def write(knob: str, target: str = WEB.target) -> Change:
    return ValueChange(Setting(TargetId(target), knob), 0.0, 1.0, "floors", "why")


def report(*changes: Change, armed: bool = True, refused: bool = True) -> Report:
    result = Refused("EBUSY") if refused else Applied(1.0)
    return Report(
        at=Instant(1.0, WALL),
        cause="tick",
        snap=snapshot(entitlement(WEB, sources=SOURCES), workloads=[WEB]),
        plan=Plan(changes),
        outcome=Outcome(tuple((change, result) for change in changes)),
        resolution=Resolution({}, Ledger(NOTHING)),
        effective={},
        held=(),
        faults={},
        drifts=(),
        armed=armed,
        cpu_s=0.0,
    )


@pytest.mark.parametrize(
    ("change", "sources"),
    [
        pytest.param(write("memory.min"), {"QoSProfile/ls", "MinimalReservationPolicy/default/db"}, id="its floor"),
        pytest.param(write("cpu.max"), {"QoSProfile/ls"}, id="another resource"),
        pytest.param(write("cpu.max", "part/default/web/c"), {"QoSProfile/ls"}, id="a part is its workload's"),
        pytest.param(Make(WEB.target, "j10ce/web", "new"), {"QoSProfile/ls"}, id="its cgroup"),
        pytest.param(write("cpu.weight", "group/j10ce"), set(), id="nobody's own"),
    ],
)
def test_who_asked_is_reported(change: Change, sources: set[str]) -> None:
    reported = failing(report(change))
    assert set(reported) == sources
    assert all("EBUSY" in why for why in reported.values())


def test_what_was_written_or_never_tried_is_no_failure() -> None:
    assert failing(report(write("cpu.max"), refused=False)) == {}
    assert failing(report(write("cpu.max"), armed=False)) == {}
