"""explain pod/NAME: what a pod of Kubernetes is entitled to, by whom, and whether its node's agent says that it holds.

All of it comes from the API server: the agent of a node reports into the node's NodeQoS. Single settings and who lost
against whom are known on the node alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from j10ce.adapters.kubernetes_workload import workload
from j10ce.cli.client import Client
from j10ce.cli.dialects.spoken import dialects_of, spoken, translated, words_of
from j10ce.cli.fleet.describe import effective, indented
from j10ce.cli.fleet.strategy import strategy_of
from j10ce.cli.output import table
from j10ce.cli.paths import path
from j10ce.cli.pods.scheduled import lines, scheduling_of
from j10ce.errors import NotFound, QosError
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import MinimalReservationPolicy, QoSProfile
from j10ce.model.kube.native import read_amount
from j10ce.model.kube.pod import Pod
from j10ce.model.resource import NOTHING
from j10ce.model.schema import convert
from j10ce.model.text.cells import dig
from j10ce.model.workload import Handle, Workload
from j10ce.policy.choose import Chooser
from j10ce.policy.entitlement.resolve import amounts
from j10ce.policy.select import compiled
from j10ce.policy.strategy import EffectiveStrategy

PREFIX: Final = "pod/"
MRP: Final = "MinimalReservationPolicy"


def explain_pod(api: Client, namespace: str, name: str) -> dict[str, Any]:
    """Facts, and a `text` for people. Raises NotFound."""
    namespace, _, name = name.rpartition("/") if "/" in name else (namespace, "", name)
    raw = _pod(api, namespace, name)
    pod = msgspec.convert(raw, Pod, dec_hook=read_amount)
    labels = dig(api.get(f"/api/v1/namespaces/{namespace}"), "metadata.labels") or {}
    understood = dialects_of(api)
    member = translated(workload(pod, labels, Handle(made=False), {}), understood)
    profiles = _items(api, "QoSProfile", None)
    choice = Chooser([convert(p, QoSProfile, []) for p in profiles]).choose(member)
    report = _report(api, pod.spec.node_name)
    said = strategy_of(api, report) if report else EffectiveStrategy()
    facts: dict[str, Any] = {
        "pod": f"{namespace}/{name}",
        "node": pod.spec.node_name,
        "tier": choice.tier.value,
        "profile": choice.profile.metadata.name if choice.profile else "",
        "why": choice.why,
        "notes": [*choice.notes, *_not_understood(member, understood)],
        **spoken(member, choice, said),
        "policies": [] if choice.ignored else [_policy(p) for p in _items(api, MRP, namespace) if _selects(p, member)],
        "scheduling": scheduling_of(api, raw, namespace, name),
        **_reported(report, f"{namespace}/{name}"),
    }
    return facts | {"text": "\n".join(_text(facts))}


def _pod(api: Client, namespace: str, name: str) -> dict[str, Any]:
    try:
        described: dict[str, Any] = api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    except NotFound as e:
        if _knows_pods(api):
            raise
        raise NotFound(f"{api.where} is no Kubernetes and has no pods; `j10ce-qos explain NAME` asks this host") from e
    return described


def _knows_pods(api: Client) -> bool:
    try:
        api.get("/api/v1/namespaces/default")
    except NotFound:
        return False
    except QosError:
        return True  # there, and not for this caller
    return True


def _items(api: Client, kind: str, namespace: str | None) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = api.get(path(KINDS[kind], namespace))["items"]
    return [item | {"apiVersion": "j10ce.io/v1alpha1", "kind": kind} for item in listed]


def _selects(raw: dict[str, Any], pod: Workload) -> bool:
    return compiled(convert(raw, MinimalReservationPolicy, []).spec.selector)(pod.labels)


def _policy(raw: dict[str, Any]) -> dict[str, str]:
    policy = convert(raw, MinimalReservationPolicy, [])
    wrong = [c for c in policy.status.conditions if (c.type, c.status) in (("Admitted", "False"), ("Degraded", "True"))]
    return {
        "name": policy.metadata.name,
        "phase": policy.status.phase,
        "minimum": str(amounts(policy.spec.minimum, NOTHING)),
        "why": "; ".join(c.message for c in wrong),
    }


def _not_understood(pod: Workload, understood: list[str]) -> list[str]:
    words = [] if understood else words_of(pod)
    return [f"{', '.join(words)}: the agents understand no dialect (docs/koordinator.md)"] if words else []


def _report(api: Client, node: str) -> dict[str, Any] | None:
    """The NodeQoS of the pod's node; None where there is none."""
    if not node:
        return None
    try:
        report: dict[str, Any] = api.get(path(KINDS["NodeQoS"], None, node))
    except NotFound:
        return None
    return report | {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS"}


def _reported(report: dict[str, Any] | None, pod: str) -> dict[str, Any]:
    if report is None:
        return {"heartbeat": "", "effective": []}
    floors = dig(report, "status.node.effective") or []
    mine = [f for f in floors if f["workload"] == pod]
    return {"heartbeat": dig(report, "status.node.heartbeat") or "", "effective": mine}


def _text(facts: dict[str, Any]) -> Iterator[str]:
    node = facts["node"]
    yield f"pod {facts['pod']}" + (f" on node {node}" if node else ", not bound to a node yet")
    chosen = f"profile {facts['profile']}, tier {facts['tier']}" if facts["profile"] else f"no profile; {facts['tier']}"
    yield f"{chosen}, by {facts['why']}"
    yield from lines(facts["scheduling"])
    yield from (f"note: {note}" for note in facts["notes"])
    if facts["overrides"]:
        yield "Differs from its profile:"
        yield indented(
            table(["FIELD", "SAID BY", "WHAT"], [(o["field"], o["by"], o["why"]) for o in facts["overrides"]])
        )
    yield from (f"not heeded: {text}" for text in facts["unheeded"])
    if not facts["policies"]:
        yield "no MinimalReservationPolicy selects it"
    else:
        rows = [(p["name"], p["phase"], p["minimum"], p["why"]) for p in facts["policies"]]
        yield from ("Promised by:", indented(table(["POLICY", "PHASE", "MINIMUM", "WHY NOT"], rows)))
    yield from effective(facts["effective"])
    if node and not facts["heartbeat"]:
        yield f"no agent reports from node {node}: nothing is enforced there"
    elif node:
        yield f"reported by the agent of {node} at {facts['heartbeat']}; ask there for single settings"
