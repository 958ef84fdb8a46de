"""The way of a pod to its node, as `explain pod/` shows it."""

from __future__ import annotations

from typing import Any

import pytest

from j10ce.cli.pods.scheduled import lines, scheduling_of
from j10ce.errors import Denied, NotFound

WAITING = {
    "spec": {"schedulerName": "j10ce-qos-scheduler"},
    "status": {
        "nominatedNodeName": "n1",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available: 2 Too many pods."}
        ],
    },
}


def event(reason: str, message: str, name: str = "web-0", at: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "shop", "name": name}
    return {"reason": reason, "message": message, "involvedObject": about, "lastTimestamp": at}


class Api:
    """Events of one cluster; `everywhere`: whether the caller may see those of all namespaces."""

    def __init__(self, *events: dict[str, Any], everywhere: bool = True, knows: bool = True) -> None:
        self._events, self._everywhere, self._knows = events, everywhere, knows

    def get(self, path: str, fieldSelector: str = "") -> Any:  # noqa: N803 - as Kubernetes spells it
        if not self._knows:
            raise NotFound(path)
        if path == "/api/v1/events" and not self._everywhere:
            raise Denied("not yours")
        wanted = dict(part.split("=") for part in fieldSelector.split(","))
        return {"items": [e for e in self._events if self._chosen(e, wanted)]}

    def _chosen(self, e: dict[str, Any], wanted: dict[str, str]) -> bool:
        has = {"reason": e["reason"], **{f"involvedObject.{k}": v for k, v in e["involvedObject"].items()}}
        return all(has[key] == value for key, value in wanted.items())


@pytest.mark.parametrize("everywhere", [True, False], ids=["an administrator", "a user of the namespace"])
def test_a_pod_says_what_it_waits_for_and_who_had_to_go(everywhere: bool) -> None:
    api: Any = Api(
        event("FailedScheduling", "0/2 nodes are available."),
        event("Pulled", "an image"),
        event("Preempted", "Preempted by shop/web-0 on node n1: rule 3: 40 s of slack", "crunch"),
        event("Preempted", "Preempted by shop/web-01 on node n1: rule 3", "other"),
        everywhere=everywhere,
    )
    assert list(lines(scheduling_of(api, WAITING, "shop", "web-0"))) == [
        "waits (j10ce-qos-scheduler): 0/2 nodes are available: 2 Too many pods.",
        "is to go to n1 as soon as there is room",
        "FailedScheduling at 2026-01-01T00:00:00Z: 0/2 nodes are available.",
        "shop/crunch had to go for it at 2026-01-01T00:00:00Z: "
        "Preempted by shop/web-0 on node n1: rule 3: 40 s of slack",
    ]


def test_only_the_latest_events_are_shown() -> None:
    many = [event("FailedScheduling", str(n), at=f"2026-01-01T00:00:{n:02}Z") for n in reversed(range(9))]
    api: Any = Api(*many)
    assert [e["message"] for e in scheduling_of(api, {}, "shop", "web-0")["events"]] == ["4", "5", "6", "7", "8"]


def test_a_pod_that_runs_where_nobody_knows_events_has_nothing_to_say() -> None:
    api: Any = Api(knows=False)
    assert scheduling_of(api, {"spec": {}, "status": {}}, "shop", "web-0") == {}
