"""The way of a pod to its node, as schedulers describe it: conditions and events of the API server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from j10ce.cli.client import Client
from j10ce.errors import Denied, NotFound
from j10ce.model.text.cells import dig

REASONS: Final = ("Scheduled", "FailedScheduling", "SchedulingGated", "Waiting", "Preempted", "EvictedForQoS")
PREEMPTED: Final = "Preempted"
MOST: Final = 5  # events of one pod, the latest


def scheduling_of(api: Client, raw: Mapping[str, Any], namespace: str, name: str) -> dict[str, Any]:
    """Facts; empty for a pod that nobody has said anything about."""
    waits = next((c for c in dig(raw, "status.conditions") or () if _waits(c)), None)
    facts = {
        "scheduler": dig(raw, "spec.schedulerName") or "",
        "waits": (waits.get("message") or waits.get("reason", "")) if waits else "",
        "nominated": dig(raw, "status.nominatedNodeName") or "",
        "events": [_spelled(e) for e in _latest(_events(api, namespace, name)) if e.get("reason") in REASONS][-MOST:],
        "gone": [_victim(e) for e in _latest(_victims(api, namespace, f"{namespace}/{name}"))][-MOST:],
    }
    return {key: value for key, value in facts.items() if value}


def lines(facts: Mapping[str, Any]) -> Iterator[str]:
    if waits := facts.get("waits"):
        yield f"waits ({facts.get('scheduler', '')}): {waits}"
    if node := facts.get("nominated"):
        yield f"is to go to {node} as soon as there is room"
    yield from (f"{event['reason']} at {event['at']}: {event['message']}" for event in facts.get("events", ()))
    for victim in facts.get("gone", ()):
        yield f"{victim['pod']} had to go for it at {victim['at']}: {victim['message']}"


def _waits(condition: Mapping[str, Any]) -> bool:
    return condition.get("type") == "PodScheduled" and condition.get("status") == "False"


def _spelled(event: Mapping[str, Any]) -> dict[str, str]:
    return {"reason": event.get("reason", ""), "at": _at(event), "message": event.get("message", "")}


def _victim(event: Mapping[str, Any]) -> dict[str, str]:
    about = event.get("involvedObject") or {}
    pod = f"{about.get('namespace', '')}/{about.get('name', '')}"
    return {"pod": pod, "at": _at(event), "message": event.get("message", "")}


def _at(event: Mapping[str, Any]) -> str:
    return event.get("lastTimestamp") or event.get("eventTime") or dig(event, "metadata.creationTimestamp") or ""


def _latest(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(events, key=_at)


def _events(api: Client, namespace: str, name: str) -> list[dict[str, Any]]:
    return _listed(api, f"/api/v1/namespaces/{namespace}/events", f"involvedObject.kind=Pod,involvedObject.name={name}")


def _victims(api: Client, namespace: str, pod: str) -> list[dict[str, Any]]:
    """Everywhere, or in the pod's own namespace for who may see no other."""
    chosen = f"involvedObject.kind=Pod,reason={PREEMPTED}"
    try:
        everywhere = _listed(api, "/api/v1/events", chosen)
    except Denied:
        everywhere = _listed(api, f"/api/v1/namespaces/{namespace}/events", chosen)
    return [event for event in everywhere if event.get("message", "").startswith(f"{PREEMPTED} by {pod} ")]


def _listed(api: Client, path: str, chosen: str) -> list[dict[str, Any]]:
    try:
        events: list[dict[str, Any]] | None = api.get(path, fieldSelector=chosen).get("items")
    except NotFound:  # a control plane of ours has no events
        return []
    return events or []
