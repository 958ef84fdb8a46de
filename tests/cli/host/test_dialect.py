"""Koordinator's words on a host: `up` understands them when it is told to, and its configuration comes by `convert`."""

from __future__ import annotations

import pytest

from tests.cli.session import Session, eventually

pytestmark = pytest.mark.host
BEST_EFFORT = ("--label", "koordinator.sh/qosClass=BE")


def test_up_with_the_dialect_understands_classes_and_its_configmap(cli: Session) -> None:
    """The class chooses the profile, and what `convert` made of the ConfigMap is in force on this node."""
    cli.up("--dialect", "koordinator")
    made = cli.says("convert", "-f", "examples/koordinator/slo-controller-config.yaml")
    assert "nodestrategy/koordinator-cpu-burst-cluster created" in cli.says("apply", "-f", "-", input=made)
    cli.running("reports", *BEST_EFFORT)
    assert eventually(lambda: "profile be (tier besteffort)" in cli.says("explain", "reports"))
    assert "label koordinator.sh/qosClass=BE" in cli.says("explain", "reports")
    assert eventually(lambda: "NodeStrategy/koordinator-cpu-burst-cluster" in cli.says("explain", "node"))


def test_up_without_the_dialect_takes_its_labels_for_any_others(cli: Session) -> None:
    cli.up()
    cli.running("reports", *BEST_EFFORT)
    assert "profile burstable (tier standard)" in cli.says("explain", "reports")
