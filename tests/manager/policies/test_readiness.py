"""What tools that wait see, judged the way kstatus judges: Current, InProgress or Failed."""

from __future__ import annotations

from typing import Any

import pytest

from j10ce.manager.policies.readiness import readiness
from j10ce.model.kinds import Condition, MinimalReservationPolicyStatus, PolicyStatus
from j10ce.model.parts.progress import FailingNode, NodeCount, RolloutStatus
from j10ce.testing.build import reservation

ALL = NodeCount(wanted=3, applied=3)
GRANTED = Condition(type="Admitted", status="True", reason="Granted", message="two units")


def condition(kind: str, status: Any, reason: str) -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=f"{kind} is {status}")


def status(*conditions: Condition, nodes: NodeCount = ALL, **more: Any) -> MinimalReservationPolicyStatus:
    phase = more.pop("phase", "Active")
    return MinimalReservationPolicyStatus(conditions=conditions, nodes=nodes, phase=phase, **more)


def kstatus(shown: tuple[Condition, ...]) -> str:
    """By the rules of sigs.k8s.io/cli-utils: an abnormal condition first, then Ready."""
    by_type = {c.type: c.status for c in shown}
    if by_type.get("Stalled") == "True":
        return "Failed"
    if by_type.get("Reconciling") == "True":
        return "InProgress"
    return "Current" if by_type["Ready"] == "True" else "InProgress"


@pytest.mark.parametrize(
    ("has", "means", "reason"),
    [
        pytest.param(status(GRANTED), "Current", "InForce", id="all is well"),
        pytest.param(PolicyStatus(nodes=ALL), "Current", "InForce", id="a profile on every node"),
        pytest.param(PolicyStatus(), "Current", "InForce", id="a profile of a fleet without nodes"),
        pytest.param(
            status(condition("Admitted", "False", "NoRoom"), phase="Pending"), "Failed", "NoRoom", id="refused"
        ),
        pytest.param(
            status(condition("Admitted", "False", "Expired"), phase="Expired"), "Failed", "Expired", id="over"
        ),
        pytest.param(
            status(GRANTED, nodes=NodeCount(wanted=3), phase="Pending"), "InProgress", "Reaching", id="nobody obeys yet"
        ),
        pytest.param(
            status(GRANTED, nodes=NodeCount(wanted=3, applied=2)), "InProgress", "Reaching", id="one does not obey yet"
        ),
        pytest.param(
            status(GRANTED, nodes=NodeCount(wanted=3, applied=2, silent=1)), "Current", "InForce", id="one is silent"
        ),
        pytest.param(
            status(GRANTED, rollout=RolloutStatus(revision=2, stopped="1 of 3 nodes fails")),
            "Failed",
            "RolloutStopped",
            id="its rollout stopped",
        ),
        pytest.param(
            status(GRANTED, condition("Progressing", "True", "Watching")), "InProgress", "Watching", id="it is watched"
        ),
        pytest.param(
            status(GRANTED, condition("Progressing", "False", "Paused")), "InProgress", "Paused", id="it is paused"
        ),
        pytest.param(
            status(GRANTED, condition("Degraded", "True", "NodeLost")),
            "InProgress",
            "NodeLost",
            id="a unit has no place",
        ),
        pytest.param(
            status(GRANTED, condition("Effective", "False", "FallsShort")), "InProgress", "FallsShort", id="no effect"
        ),
        pytest.param(
            status(
                GRANTED, nodes=NodeCount(wanted=3, applied=3, failing=1, named=(FailingNode(node="n1", why="full"),))
            ),
            "InProgress",
            "NodesFail",
            id="a node fails with it",
        ),
    ],
)
def test_a_tool_that_waits_knows_when_to_stop(has: PolicyStatus, means: str, reason: str) -> None:
    conditions = readiness(reservation("db", cpu="1"), has)
    assert kstatus(conditions) == means
    assert {c.reason for c in conditions} == {reason}
    assert all(c.message for c in conditions)
    assert {c.type: c.status for c in conditions}["Ready"] in ("True", "False")


@pytest.mark.parametrize(("nodes", "says"), [(1, "1 node obeys it"), (3, "3 nodes obey it")])
def test_one_node_is_reported_as_one(nodes: int, says: str) -> None:
    conditions = readiness(reservation("db"), PolicyStatus(nodes=NodeCount(wanted=nodes, applied=nodes)))
    assert [c.message for c in conditions] == [says]
