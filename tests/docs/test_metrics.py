"""The pages name every metric of the manager, and none that it does not have."""

from __future__ import annotations

import re
from pathlib import Path

from j10ce.manager.documents.fleet_metrics import certificates
from j10ce.manager.kube.metrics import DoorMetrics
from j10ce.manager.telemetry.metrics import Metrics

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_pages_and_the_manager_agree_on_metrics() -> None:
    metrics = Metrics()
    DoorMetrics(metrics.registry)
    served = {
        f"{family.name}_total" if family.type == "counter" else family.name for family in metrics.registry.collect()
    }
    served |= {family.name for family in certificates({})}
    pages = "".join((DOCS / name).read_text() for name in ("fleet.md", "kubernetes-manager.md"))
    assert set(re.findall(r"`(j10ce_manager_\w+)", pages)) == served
