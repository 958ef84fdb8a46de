"""One object for a person: what it says, what became of it, and what that means."""

from __future__ import annotations

from typing import Any

from j10ce.cli.output import dump, table
from j10ce.model.catalogue import Kind
from j10ce.model.kinds import QoSProfile
from j10ce.model.quantity import Quantity
from j10ce.model.resource import spell
from j10ce.model.schema import convert
from j10ce.model.text.cells import dig, shown
from j10ce.policy import profiles

NODE_WORDS = {"wanted": "wanted", "applied": "applied", "failing": "failing", "silent": "not reporting"}
TABLES = ("conditions", "effective", "nodes", "phase", "rollout")  # shown below in a form of their own


def describe(kind: Kind, obj: dict[str, Any]) -> str:
    meta = obj["metadata"]
    head = [("Name", meta["name"]), ("Namespace", meta.get("namespace")), ("Kind", kind.name)]
    head += [("Created", meta.get("creationTimestamp")), ("Generation", meta.get("generation"))]
    head += [("Labels", ", ".join(f"{k}={v}" for k, v in sorted(meta.get("labels", {}).items())))]
    head += [("Phase", dig(obj, "status.phase") or (kind.name == "MinimalReservationPolicy" and "Pending"))]
    lines = [f"{name + ':':<13}{shown(str(value))}" for name, value in head if value]
    for part in ("spec", "status", "data"):
        body = {k: v for k, v in (obj.get(part) or {}).items() if part != "status" or k not in TABLES}
        if body:
            lines += [f"{part.capitalize()}:", indented(dump(body, "yaml"))]
    if kind.name == "QoSProfile":
        lines += [
            "Effect:",
            indented(table(["KNOB", "WHAT THE PROFILE DOES"], profiles.describe(convert(obj, QoSProfile, [])))),
        ]
    lines += distribution(obj.get("status") or {})
    lines += conditions(dig(obj, "status.conditions") or dig(obj, "status.node.conditions") or [])
    lines += effective(dig(obj, "status.effective") or dig(obj, "status.node.effective") or [])
    return "\n".join(lines)


def distribution(status: dict[str, Any]) -> list[str]:
    """Who obeys a policy, who fails with it, and where its rollout stands."""
    lines = []
    if nodes := status.get("nodes"):
        counts = ", ".join(f"{nodes.get(name, 0)} {words}" for name, words in NODE_WORDS.items())
        failing = table(["NODE", "WHY IT FAILS"], [(n["node"], n["why"]) for n in nodes.get("named", ())])
        lines += [f"{'Nodes:':<13}{counts}", *([indented(failing)] if nodes.get("named") else [])]
    if rollout := status.get("rollout"):
        stable = f"stable is {rollout['stable']}" if rollout.get("stable") else "none is stable yet"
        reached = f"revision {rollout['revision']} has reached {rollout.get('reached', 0)} % of the cohorts"
        back = ", ".join(rollout.get("back", ()))
        lines += [f"{'Rollout:':<13}{reached}; {stable}", *([f"  went back: {back}"] if back else [])]
    return lines


def conditions(conditions: list[dict[str, Any]]) -> list[str]:
    rows = [(c["type"], c["status"], c.get("reason"), c.get("message")) for c in conditions]
    return ["Conditions:", indented(table(["TYPE", "STATUS", "REASON", "MESSAGE"], rows))] if rows else []


def effective(floors: list[dict[str, Any]]) -> list[str]:
    heading = ["NODE", "WORKLOAD", "RESOURCE", "PROMISED", "EFFECTIVE", "WHY"]
    return ["Floors:", indented(table(heading, list(map(_floor, floors))))] if floors else []


def _floor(floor: dict[str, Any]) -> tuple[str | None, ...]:
    promised, given = (readable(floor["resource"], floor[part]) for part in ("promised", "effective"))
    return floor["node"], floor["workload"], floor["resource"], promised, given, floor.get("reason") or "holds"


def readable(resource: str, text: str | None) -> str | None:
    """Bytes are rounded to what people read; everything exact is in -o yaml."""
    return spell(resource, Quantity.parse(text).bytes()) if text and resource == "memory" else text


def indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
