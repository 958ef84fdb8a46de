"""What the metrics say of objects that make no sense."""

from __future__ import annotations

from j10ce.manager.census import unreadable
from j10ce.manager.metrics import Metrics


def test_objects_that_make_no_sense_are_counted_by_kind() -> None:
    metrics = Metrics()
    metrics.also(lambda: unreadable({"Hold": 2, "QoSProfile": 0}))
    told = bytes(metrics.render().body).decode().splitlines()
    assert 'j10ce_objects_unreadable{kind="Hold"} 2.0' in told
    assert 'j10ce_objects_unreadable{kind="QoSProfile"} 0.0' in told
