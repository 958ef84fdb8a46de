"""A traced change is reported once the ring has carried it out, and once only."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.agent.report.applied_changes import MOST, Trail
from j10ce.daemon.clock import Instant
from j10ce.model.kinds import TRACE_ANNOTATION, Meta, NodeQoS, NodeReport
from j10ce.policy.document.document import NodeDocument, render
from j10ce.policy.profiles import builtin
from j10ce.testing import build
from tests.agent.whole_ring import Ring

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SOURCE = "MinimalReservationPolicy/default/floor"


def document(cpu: str, trace: str = "", generation: int = 1) -> NodeDocument:
    floor = build.reservation("floor", labels={"app": "web"}, cpu=cpu)
    annotations = {TRACE_ANNOTATION: trace} if trace else {}
    floor = replace(floor, metadata=replace(floor.metadata, annotations=annotations, generation=generation))
    return NodeDocument(node="n1", profiles=builtin(), policies=(floor,))


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    one = Ring(tmp_path, "v2")
    one.arrive(build.workload("web", profile="ls", labels={"app": "web"}))
    one.tick()
    return one


def obeyed(ring: Ring, trail: Trail, obeying: NodeDocument) -> None:
    """As a host does it: expected, obeyed, run."""
    trail.expect(obeying, Instant(ring.now, ring.wall))
    ring.agent.obey(obeying)
    trail.ran(ring.tick())


def test_a_change_is_reported_with_its_trace_and_its_writes(ring: Ring) -> None:
    trail = Trail(document("100m"))
    obeyed(ring, trail, document("700m", TRACE, 2))
    (applied,) = trail.applied
    assert (applied.source, applied.generation, applied.trace) == (SOURCE, 2, TRACE)
    assert applied.writes > 0
    assert applied.received <= applied.applied


def test_it_is_reported_until_the_control_plane_has_it(ring: Ring) -> None:
    trail = Trail(document("100m"))
    obeyed(ring, trail, document("700m", TRACE, 2))
    report = NodeReport(applied=trail.applied)
    obeyed(ring, trail, document("800m", TRACE.replace("b7", "c8"), 3))
    trail.reported(report)
    assert [change.generation for change in trail.applied] == [3]


def test_what_is_in_force_at_the_start_is_old_news(ring: Ring) -> None:
    known = document("700m", TRACE, 2)
    trail = Trail(known)
    obeyed(ring, trail, known)
    assert trail.applied == ()


def test_a_run_that_began_before_the_document_came_has_not_carried_it_out(ring: Ring) -> None:
    trail, wanted = Trail(document("100m")), document("700m", TRACE, 2)
    early = ring.tick()
    trail.expect(wanted, Instant(early.at.now + 1, early.at.wall + 1))
    trail.ran(early)
    assert trail.applied == ()


def test_what_nobody_fetches_is_bounded(ring: Ring) -> None:
    trail = Trail(document("100m"))
    for n in range(MOST + 10):
        obeyed(ring, trail, document("700m", TRACE, n))
    assert len(trail.applied) == MOST
    assert trail.applied[-1].generation == MOST + 9


def test_a_document_keeps_the_trace_and_no_other_annotation() -> None:
    floor = build.reservation("floor", cpu="1")
    noted = {TRACE_ANNOTATION: TRACE, "owner": "me"}
    floor = replace(floor, metadata=replace(floor.metadata, annotations=noted))
    made = render(NodeQoS(metadata=Meta(name="n1")), policies=(floor,))
    assert made.policies[0].metadata.annotations == {TRACE_ANNOTATION: TRACE}
