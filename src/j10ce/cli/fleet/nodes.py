"""cordon and uncordon; and one node for a person: what it has, what is promised, what it may lend and why."""

from __future__ import annotations

from typing import Any

import click

from j10ce.cli.fleet.describe import conditions, effective, indented, readable
from j10ce.cli.output import say, table
from j10ce.cli.paths import path
from j10ce.cli.peers import ALIASES, Peers, complete_names
from j10ce.errors import Conflict
from j10ce.model.catalogue import KINDS
from j10ce.model.machine.topology import in_words
from j10ce.model.parts.totals import TopologyReport
from j10ce.model.schema import convert
from j10ce.model.text.cells import dig, shown
from j10ce.policy.strategy import EffectiveStrategy, rows

NODE = KINDS["NodeQoS"]
MOST_TRIES = 5
SIGNS = {"plus": "+", "minus": "−", "at most": "≤", "at least": "≥"}


def _names(words: tuple[str, ...]) -> tuple[str, ...]:
    """`cordon n1 n2` and `cordon node n1 n2` mean the same."""
    kinds = (*ALIASES, NODE.name.lower(), NODE.plural, *NODE.short)
    return words[1:] if len(words) > 1 and words[0].lower() in kinds else words


@click.command("cordon")
@click.argument("names", nargs=-1, required=True, shell_complete=complete_names)
@click.pass_obj
def cordon_command(peers: Peers, names: tuple[str, ...]) -> None:
    """Place nothing more on a node; what runs there and what is held there stays.

    \b
    Example:
      j10ce-qos cordon node host-3
    """
    _mark(peers, _names(names), cordoned=True)


@click.command("uncordon")
@click.argument("names", nargs=-1, required=True, shell_complete=complete_names)
@click.pass_obj
def uncordon_command(peers: Peers, names: tuple[str, ...]) -> None:
    """Let a node be chosen again.

    \b
    Example:
      j10ce-qos uncordon node host-3
    """
    _mark(peers, _names(names), cordoned=False)


def _mark(peers: Peers, names: tuple[str, ...], *, cordoned: bool) -> None:
    done = "cordoned" if cordoned else "uncordoned"
    for name in names:
        changed = _set_unschedulable(peers, name, cordoned)
        say(f"node/{name} {done if changed else f'is {done} already'}")


def _set_unschedulable(peers: Peers, name: str, wanted: bool) -> bool:
    """False when it was so before. A report of its agent may come in between; then it is read again."""
    api, where = peers.api(), path(NODE, None, name)
    for tries in range(1, MOST_TRIES + 1):
        node = api.get(where)
        if bool(dig(node, "spec.unschedulable")) == wanted:
            return False
        try:
            api.put(where, {**node, "spec": {**(node.get("spec") or {}), "unschedulable": wanted}})
            return True
        except Conflict:
            if tries == MOST_TRIES:
                raise
    return False


def describe_node(obj: dict[str, Any], said: EffectiveStrategy | None = None) -> str:
    """`said`: by the strategies that select it."""
    meta, spec, report = obj["metadata"], obj.get("spec") or {}, dig(obj, "status.node") or {}
    labels = {**meta.get("labels", {}), **spec.get("labels", {})}
    head = [
        ("Name", meta["name"]),
        ("Kind", "NodeQoS"),
        ("Labels", ", ".join(f"{k}={v}" for k, v in sorted(labels.items()))),
        ("Schedulable", "no: cordoned" if spec.get("unschedulable") else "yes"),
        ("Armed", "yes" if report.get("armed") else "no"),
        ("Agent", report.get("agentVersion")),
        ("Heartbeat", report.get("heartbeat") or "never"),
        ("CPUs", _cpus(report)),
        ("Workloads", str(report.get("workloads", 0))),
        ("Pressure", ", ".join(f"{k} {v:.1%}" for k, v in report.get("pressure", {}).items())),
    ]
    lines = [f"{name + ':':<13}{shown(str(value))}" for name, value in head if value]
    lines += _section("Resources", _resources(report))
    lines += _section("Strategy", table(["FIELD", "VALUE", "SAID BY"], rows(said)) if said and said.origins else "")
    lines += _section("Overcommit", _overcommit(obj.get("status") or {}))
    lines += _section("Reservations", _reservations(report))
    lines += _section("Missing", _missing(report))
    lines += conditions([*(dig(obj, "status.conditions") or []), *report.get("conditions", [])])
    return "\n".join(lines + effective(report.get("effective", [])))


def _cpus(report: dict[str, Any]) -> str:
    topology = report.get("topology")
    return in_words(convert(topology, TopologyReport, [])) if topology else ""


def _section(title: str, body: str) -> list[str]:
    return [f"{title}:", indented(body)] if body else []


def _resources(report: dict[str, Any]) -> str:
    """What there is, what is promised, what is used, and the peak to expect."""
    paths = (
        "capacity.{}", "reserved.{}", "usage.{}.p50", "usage.{}.p95", "usage.{}.p98", "usage.{}.max",
        "predicted.{}.node", "predicted.{}.protected",
    )  # fmt: skip
    rows = [
        (name, *(readable(name, dig(report, path.format(name))) for path in paths))
        for name in report.get("capacity", {})
    ]
    headings = ["RESOURCE", "CAPACITY", "RESERVED", "P50", "P95", "P98", "MAX", "PEAK", "PEAK-PROTECTED"]
    return table(headings, rows) if rows else ""


def _overcommit(status: dict[str, Any]) -> str:
    """Every result, and under it the steps that lead to it."""
    rows: list[tuple[str, str | None, str | None]] = []
    for result, amount in status.get("overcommit", {}).items():
        resource, terms = result.partition("-")[2], status.get("overcommitTerms", [])
        rows.append((result, readable(resource, amount), None))
        rows += [
            (f"  {SIGNS[t['step']]} {t['name']}", readable(resource, t["amount"]), t.get("why"))
            for t in terms
            if t["result"] == result
        ]
    zones = _zones(status.get("overcommitZones") or {})
    by = f"by the strategy {status['overcommitStrategy']}\n" if status.get("overcommitStrategy") else ""
    return by + table(["RECLAIMABLE", "AMOUNT", "WHY"], rows) + zones if rows else ""


def _zones(lent: dict[str, dict[str, str]]) -> str:
    """What may be lent on each memory node, where there are several."""
    rows = [
        (zone, *(readable(r, amounts.get(f"batch-{r}")) for r in ("cpu", "memory"))) for zone, amounts in lent.items()
    ]
    return "\n\n" + table(["MEMORY NODE", "BATCH-CPU", "BATCH-MEMORY"], rows) if rows else ""


def _reservations(report: dict[str, Any]) -> str:
    rows = [
        (r["source"].partition("/")[2], r.get("units", 0), r.get("used", 0), r.get("workloads", 0), r.get("refused"))
        for r in report.get("reservations", [])
    ]
    return table(["POLICY", "UNITS", "USED", "WORKLOADS", "REFUSED"], rows) if rows else ""


def _missing(report: dict[str, Any]) -> str:
    """What this machine cannot enforce."""
    rows = [(c["feature"], c.get("needs")) for c in report.get("capabilities", []) if not c["ok"]]
    return table(["FEATURE", "NEEDS"], rows) if rows else ""
