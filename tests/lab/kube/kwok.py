"""What kwok makes of nodes and pods: the stages it is configured with, and a node for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Delay: TypeAlias = tuple[int, int]  # milliseconds, at least and at most

AT_ONCE: Delay = (0, 0)
CAPACITY = {"cpu": "32", "memory": "256Gi", "pods": "110"}
READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'
DELETED = ".metadata.deletionTimestamp"
STARTS = {DELETED: "DoesNotExist", ".status.podIP": "DoesNotExist"}
NODE_READY = """conditions: [{type: Ready, status: "True", reason: Lab, lastHeartbeatTime: {{ Now | Quote }},
 lastTransitionTime: {{ .metadata.creationTimestamp | Quote }}}]"""
POD_RUNNING = """{{ $now := Now | Quote }}{phase: Running, startTime: {{ $now }},
podIP: {{ PodIPWith .spec.nodeName (or .spec.hostNetwork false)
  .metadata.uid .metadata.name .metadata.namespace | Quote }},
conditions: [{{ range list "Initialized" "ContainersReady" "Ready" }}
  {type: {{ . }}, status: "True", lastTransitionTime: {{ $now }} }, {{ end }}],
containerStatuses: [{{ range .spec.containers }}{name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "",
  ready: true, started: true, restartCount: 0, state: {running: {startedAt: {{ $now }} } } }, {{ end }}]}"""


def stages(start_ms: Delay = AT_ONCE) -> list[dict[str, Any]]:
    """kwok does nothing, and says so, without them. `start_ms`: what the start of a pod takes, from and to."""
    return [
        stage("Node", "ready", {READY: "NotIn True"}, status(NODE_READY)),
        stage("Node", "heartbeat", {READY: "In True"}, status(NODE_READY), delay_ms=(300_000, 330_000)),
        stage("Pod", "ready", STARTS, status(POD_RUNNING), delay_ms=start_ms),
        stage("Pod", "delete", {DELETED: "Exists"}, {"finalizers": {"empty": True}}, {"delete": True}),
    ]


def stage(
    kind: str, name: str, when: Mapping[str, str], *steps: Mapping[str, Any], delay_ms: Delay = AT_ONCE
) -> dict[str, Any]:
    """`when`: a jq expression and "Operator" or "Operator value"."""
    tests = [{"jq": {"key": key, "operator": t.split()[0], "values": t.split()[1:]}} for key, t in when.items()]
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": f"{kind}-{name}".lower()},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": tests},
            "steps": list(steps),
            "delay": dict(zip(("durationMilliseconds", "jitterDurationMilliseconds"), delay_ms, strict=True)),
        },
    }


def status(template: str) -> dict[str, Any]:
    return {"patch": {"subresource": "status", "root": "status", "template": template}}


def node(number: int, capacity: Mapping[str, str] | None = None) -> dict[str, Any]:
    name = f"fake-{number:04}"
    labels = {
        "type": "kwok",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    has = dict(capacity or CAPACITY)
    addresses = [{"type": "Hostname", "address": name}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": has, "allocatable": has, "addresses": addresses},
    }
