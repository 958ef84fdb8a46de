"""A report fits whatever a node runs: totals and troubles first, and it says how much it leaves out."""

from __future__ import annotations

import json

from j10ce.agent.report.report import tiers
from j10ce.agent.report.size import fitted
from j10ce.model.kinds import EffectiveFloor, NodeReport, ReservationReport
from j10ce.model.parts.totals import CpuGroup, TierTotal, TopologyReport
from j10ce.model.quantity import Quantity
from j10ce.model.schema import encode
from tests.agent.report.test_failures import report

MOST = 64 * 1024
ONE = Quantity.parse("1")


def floor(n: int, reason: str = "") -> EffectiveFloor:
    return EffectiveFloor(
        node="n1", workload=f"default/w{n}", resource="cpu", promised=ONE, effective=ONE, reason=reason, source="x" * 80
    )


def refused(n: int) -> ReservationReport:
    bare = tuple(f"a-workload-{n}" for n in range(900))
    return ReservationReport(source=f"p{n}", units=n, refused="no room " * 900, unprotected_workloads=bare)


def test_a_small_report_is_left_as_it_is() -> None:
    whole = NodeReport(effective=tuple(floor(n) for n in range(50)), workloads=50)
    assert fitted(whole) == whole


def test_a_large_report_keeps_totals_and_troubles_and_counts_the_rest() -> None:
    broken = [floor(n, "a reason " * 5000) for n in range(30)]
    whole = NodeReport(
        workloads=3000,
        effective=(*broken, *(floor(n) for n in range(30, 3000))),
        tiers={"standard": TierTotal(workloads=3000, promised={"cpu": Quantity.parse("3000")})},
        reservations=tuple(refused(n) for n in range(20)),
        failing={f"QoSProfile/p{n}": "why " * 4000 for n in range(20)},
        claimed={f"ns{n}": {"cpu": ONE} for n in range(50)},
    )
    made = fitted(whole)
    size = len(json.dumps(json.loads(encode(made)), separators=(",", ":")))
    assert MOST - 4096 < size <= MOST - 2048 + 500
    assert [f.workload for f in made.effective[:30]] == [f.workload for f in broken]
    assert (len(made.reservations), len(made.failing), len(made.claimed)) == (20, 20, 50)
    assert {len(r.unprotected_workloads) for r in made.reservations} == {16}
    assert made.tiers == whole.tiers
    assert made.left_out == {"effective": 3000 - len(made.effective)}
    shown = [f.workload for f in made.effective[30:]]
    assert shown == [f"default/w{n}" for n in range(30, 30 + len(shown))], "in the order of their use"


def test_reservations_that_do_not_fit_are_counted() -> None:
    whole = NodeReport(
        reservations=tuple(ReservationReport(source=f"MinimalReservationPolicy/n/p{n}") for n in range(3000))
    )
    made = fitted(whole)
    assert len(encode(made)) <= MOST
    assert made.left_out == {"reservations": 3000 - len(made.reservations)}
    assert len(made.reservations) <= 1024


def test_totals_are_reported_by_tier() -> None:
    made = tiers(report())
    assert {name: total.workloads for name, total in made.items()} == {"standard": 1}
    assert set(made["standard"].used) == {"cpu", "memory"}


def test_lists_of_cpus_do_not_take_the_room_of_what_is_wrong() -> None:
    scattered = ",".join(str(n) for n in range(0, 340, 2))
    odd = TopologyReport(threads=8192, cores=4096, l3_caches=tuple(CpuGroup(id=n, cpus=scattered) for n in range(100)))
    small = TopologyReport(threads=4, cores=2, l3_caches=(CpuGroup(cpus="0-3"),))
    broken = tuple(floor(n, "a reason " * 40) for n in range(90))
    kept = fitted(NodeReport(effective=broken, topology=odd))
    assert kept.topology == TopologyReport(threads=8192, cores=4096)
    assert (len(kept.effective), kept.left_out) == (90, {"topology": 100})
    assert fitted(NodeReport(effective=broken * 5, topology=small)).topology == small
