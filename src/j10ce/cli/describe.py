"""One object for a person: what it says, what became of it, and what that means."""

from __future__ import annotations

from typing import Any

from j10ce.cli.output import dump, table
from j10ce.model.catalogue import Kind
from j10ce.model.cells import dig
from j10ce.model.kinds import QoSProfile
from j10ce.model.schema import convert
from j10ce.policy import profiles


def describe(kind: Kind, obj: dict[str, Any]) -> str:
    meta = obj["metadata"]
    head = [("Name", meta["name"]), ("Namespace", meta.get("namespace")), ("Kind", kind.name)]
    head += [("Created", meta.get("creationTimestamp")), ("Generation", meta.get("generation"))]
    head += [("Labels", ", ".join(f"{k}={v}" for k, v in sorted(meta.get("labels", {}).items())))]
    lines = [f"{name + ':':<13}{value}" for name, value in head if value]
    for part in ("spec", "status", "data"):
        body = {k: v for k, v in (obj.get(part) or {}).items() if k not in ("conditions", "effective")}
        if body:
            lines += [f"{part.capitalize()}:", indented(dump(body, "yaml"))]
    if kind.name == "QoSProfile":
        lines += [
            "Effect:",
            indented(table(["KNOB", "WHAT THE PROFILE DOES"], profiles.describe(convert(obj, QoSProfile)))),
        ]
    lines += conditions(dig(obj, "status.conditions") or dig(obj, "status.node.conditions") or [])
    lines += effective(dig(obj, "status.effective") or dig(obj, "status.node.effective") or [])
    return "\n".join(lines)


def conditions(conditions: list[dict[str, Any]]) -> list[str]:
    rows = [(c["type"], c["status"], c.get("reason"), c.get("message")) for c in conditions]
    return ["Conditions:", indented(table(["TYPE", "STATUS", "REASON", "MESSAGE"], rows))] if rows else []


def effective(floors: list[dict[str, Any]]) -> list[str]:
    rows = [
        (f["node"], f["workload"], f["resource"], f["promised"], f["effective"], f.get("reason") or "holds")
        for f in floors
    ]
    heading = ["NODE", "WORKLOAD", "RESOURCE", "PROMISED", "EFFECTIVE", "WHY"]
    return ["Floors:", indented(table(heading, rows))] if rows else []


def indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
