"""Who suffers from whom, as it is shown: `top`, `explain` of both sides, metrics, the node's report."""

from __future__ import annotations

from msgspec.structs import replace

from j10ce.agent.report.metrics import Metrics
from j10ce.agent.report.report import node_report
from j10ce.agent.report.size import MOST_PAIRS, ROOM, fitted
from j10ce.agent.ring.contained import Contained
from j10ce.agent.ring.ring import Report
from j10ce.agent.socket.answers import interference_notes, top
from j10ce.control.floors import Floors
from j10ce.control.interference.interference import Interference
from j10ce.daemon.clock import Instant
from j10ce.model.kinds import InterferenceReport, NodeQoS, NodeQoSStatus, NodeReport
from j10ce.model.knob import NODE
from j10ce.model.plan import Outcome, Plan
from j10ce.model.resource import NOTHING
from j10ce.model.schema import encode
from j10ce.observe.series import SeriesBook
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.entitlement.ledger import Ledger
from j10ce.policy.entitlement.resolve import Resolution
from j10ce.policy.validation.reported import report_findings
from j10ce.testing.build import WALL, entitlement, meta, snapshot, workload

WEB, HOG, IDLE = workload("web"), workload("hog"), workload("idle")
PAIR = InterferenceReport(
    victim="default/web",
    antagonist="default/hog",
    resource="cpu",
    suffering="waits 40% of the time for a CPU, usually 2%",
    evidence="it uses 1.50 CPUs more then: correlation 0.81 over 29 samples, overlap 100%",
    correlation=0.81,
    samples=29,
    action="observed",
)


def report(*pairs: InterferenceReport, readings: SeriesBook | None = None, now: float = 1.0) -> Report:
    entitled = [entitlement(w) for w in (WEB, HOG, IDLE)]
    snap = snapshot(*entitled, workloads=[WEB, HOG, IDLE], readings=readings.at(now) if readings else None, now=now)
    resolution = Resolution({e.target: e for e in entitled}, Ledger(NOTHING))
    return Report(
        Instant(now, WALL), "tick", snap, Plan(), Outcome(), resolution, {}, (), {}, (), armed=True, cpu_s=0.0,
        interference=pairs,
    )  # fmt: skip


def test_top_says_who_suffers_and_who_causes_it() -> None:
    (pair,) = top(report(PAIR))["interference"]
    assert (pair["victim"], pair["antagonist"], pair["action"]) == ("default/web", "default/hog", "observed")


def test_both_sides_are_explained_and_nobody_else() -> None:
    (victim,) = interference_notes(report(PAIR), WEB.target)
    (antagonist,) = interference_notes(report(PAIR), HOG.target)
    assert victim.startswith("suffers from default/hog: waits 40% of the time for a CPU, usually 2%; ")
    assert antagonist.startswith("slows default/web, which waits 40% of the time for a CPU, usually 2%; ")
    assert not [*interference_notes(report(PAIR), IDLE.target)]


def test_metrics_count_pairs_by_resource() -> None:
    text = Metrics().render(report(PAIR, replace(PAIR, antagonist="default/idle")))
    assert b'j10ce_interference{resource="cpu"} 2.0' in text
    assert b'j10ce_interference{resource="memory"} 0.0' in text


def test_a_report_that_is_too_long_keeps_the_worst_pairs() -> None:
    many = tuple(replace(PAIR, evidence="x" * 8000, antagonist=f"default/h{n}") for n in range(16))
    cut = fitted(NodeReport(interference=many))
    assert cut.interference == many[:MOST_PAIRS]
    assert cut.left_out == {"interference": 16 - MOST_PAIRS}
    small = tuple(replace(PAIR, antagonist=f"default/h{n}") for n in range(16))
    assert fitted(NodeReport(interference=small)).interference == small
    assert len(encode(NodeReport(interference=small))) < ROOM


def test_a_correlation_above_one_is_refused() -> None:
    node = NodeQoS(metadata=meta("n1"), status=NodeQoSStatus(node=NodeReport(interference=(PAIR,))))
    assert report_findings(node) == []
    wrong = NodeReport(interference=(replace(PAIR, correlation=1.5), replace(PAIR, samples=-1)))
    paths = [f.path for f in report_findings(replace(node, status=NodeQoSStatus(node=wrong)))]
    assert paths == ["status.node.interference[0].correlation", "status.node.interference[1].samples"]


def test_only_a_controller_that_looks_for_it_says_who_suffers() -> None:
    assert Contained(Floors(Floors.Config())).seen == ()
    looking = Interference(Interference.Config())
    looking.seen = (PAIR,)
    assert Contained(looking).seen == (PAIR,)


def test_use_over_longer_times_is_reported_once_half_of_it_was_measured() -> None:
    book = SeriesBook()
    for n in range(400):
        book.add(float(n), NODE, "cpu.usage", 1.0 if n % 2 else 3.0)
    over = node_report(report(readings=book, now=399.0), NodeDocument(node="n1")).usage_over
    assert set(over) == {"5m", "10m"}
    assert {name: str(q) for name, q in over["5m"]["cpu"].items()} == {
        "avg": "2", "p50": "1", "p90": "3", "p95": "3", "p99": "3",
    }  # fmt: skip
