"""What the socket answers from a report: listings, usage, status. Pure functions, called on the ring's thread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, Final

from msgspec import UNSET, Struct
from msgspec.structs import replace

from j10ce.agent.report import traffic
from j10ce.agent.report.report import effective_floors
from j10ce.agent.ring.objects import quantities, to_object
from j10ce.agent.ring.ring import Report
from j10ce.agent.socket import evicting
from j10ce.agent.socket.shortfall import absent_devices
from j10ce.control.disk import shown
from j10ce.kernel.kernel import Kernel
from j10ce.model import kinds, knob, schema
from j10ce.model.kinds import API_VERSION, Condition, WorkloadStatus
from j10ce.model.knob import NODE, TargetId, link
from j10ce.model.plan import Applied, Change, Outcome, Refused, Remove, ValueChange
from j10ce.model.quantity import Quantity
from j10ce.model.resource import NOTHING, RESOURCES
from j10ce.model.text.words import counted
from j10ce.model.workload import Workload
from j10ce.plan.explanation.explain import explain
from j10ce.plan.explanation.text import render_text
from j10ce.policy.equipment import unmeasured
from j10ce.policy.strategy import EffectiveStrategy, rows
from j10ce.policy.validation.validate import DEEDS

RECENT_S: Final = 5.0
KNOWN_S: Final = 60.0  # how old the last value of what is read seldom may be
KIB: Final = 1024
RATES: Final = {  # of a workload: how each is called, and its series
    "egress": "net.egress.rate",
    "ingress": "net.ingress.rate",
    "diskRead": "disk.read",
    "diskWrite": "disk.write",
}


def listing(items: Iterable[Struct], kind: str = "WorkloadList") -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"resourceVersion": "0"}, "items": list(items)}


def workloads(report: Report) -> list[kinds.Workload]:
    present = report.snap.workloads.values()
    return [to_object(w, _status(w, report)) for w in sorted(present, key=lambda w: (w.namespace, w.name))]


def _status(workload: Workload, report: Report) -> WorkloadStatus:
    target = workload.target
    entitled = report.snap.entitlements.get(target)
    group = report.snap.groups.get(target)
    return WorkloadStatus(
        phase="Pending" if workload.pids or (group is not None and not group.owned and not group.exists) else "Running",
        profile=entitled.profile if entitled else "",
        tier=entitled.tier if entitled else UNSET,
        native_class=workload.native_class,
        cgroup=workload.handle.path,
        floor=quantities(entitled.floor) if entitled else {},
        usage={} if workload.pids else _usage(target, report),  # until it is in, the cgroup of its name is another's
        effective=tuple(effective_floors(report, target)),
        conditions=tuple(
            Condition(type=note.kind, status="True", message=str(note)) for note in (entitled.notes if entitled else ())
        ),
    )


def _usage(target: TargetId, report: Report) -> dict[str, Quantity]:
    cpu, memory = _recent(target, "cpu.usage", report), _recent(target, "memory.current", report)
    return {
        "cpu": Quantity(Fraction(round((cpu or 0.0) * 1000), 1000)),
        "memory": Quantity(Fraction(round((memory or 0.0) / KIB) * KIB)),  # single bytes of an average say nothing
        **{name: Quantity(Fraction(round(rate))) for name, rate in _rates(target, report).items()},
    }


def _rates(target: TargetId, report: Report) -> dict[str, float]:
    """Of traffic and of disks, those that are measured."""
    measured = ((name, _recent(target, metric, report)) for name, metric in RATES.items())
    return {name: rate for name, rate in measured if rate is not None}


def _recent(target: TargetId, metric: str, report: Report) -> float | None:
    return report.snap.readings.window(target, metric, RECENT_S).mean()


def _known(target: TargetId, metric: str, report: Report) -> float | None:
    """Pressure is read on a few samples only: between two of them the last one counts."""
    recent = _recent(target, metric, report)
    return report.snap.readings.window(target, metric, KNOWN_S).last() if recent is None else recent


def top(report: Report) -> dict[str, Any]:
    """Numbers for people: CPUs, bytes, shares of time."""
    snap = report.snap

    def recent(target: TargetId, metric: str) -> float:
        return _recent(target, metric, report) or 0.0

    rows = [
        {
            "namespace": w.namespace,
            "name": w.name,
            "profile": e.profile if (e := snap.entitlements.get(w.target)) else "",
            "tier": e.tier.value if e else "",
            "cpu": recent(w.target, "cpu.usage"),
            "memory": recent(w.target, "memory.current"),
            "floor": dict(zip(RESOURCES, e.floor if e else NOTHING, strict=True)),
            "effective": _effective(report, w.target),
            "rates": _rates(w.target, report),
            "traffic": traffic.fares(snap, w.target),
            "pressure": _known(w.target, "cpu.pressure", report),
            "ioPressure": _known(w.target, "io.pressure", report),
            "throttled": _known(w.target, "cpu.throttled", report) or 0.0,
            "state": evicting.state(report, w.target),
            "cgroup": w.handle.path,
        }
        for w in snap.workloads.values()
    ]
    node = {
        "name": snap.node.name,
        "cpus": len(snap.node.cpus),
        "cpu": recent(NODE, "cpu.usage"),
        "memory": recent(NODE, "memory.working_set"),
        "memoryTotal": snap.node.memory,
        "pressure": {name: recent(NODE, f"{name}.pressure") for name in ("cpu", "memory", "io")},
        "links": _links(report),
        "disks": shown.rows(snap),
    }
    interference = [schema.plain(i) for i in report.interference]
    return {"node": node, "interference": interference, "workloads": sorted(rows, key=lambda r: -float(str(r["cpu"])))}


def _links(report: Report) -> list[dict[str, Any]]:
    managed = sorted((k for k in report.snap.node.links.values() if k.managed), key=lambda k: k.name)
    return [
        {
            "name": k.name,
            "capacity": k.capacity if k.capacity < math.inf else None,
            **{way: _recent(link(k.name), f"net.{way}.rate", report) or 0.0 for way in ("egress", "ingress")},
        }
        for k in managed
    ]


def _effective(report: Report, target: TargetId) -> dict[str, float] | None:
    judged = report.effective.get(target)
    return {resource: has for resource, _, has, _ in judged.rows()} if judged else None


def status(report: Report) -> dict[str, Any]:
    results = Counter(
        "not written: the agent is read-only (not armed)" if report.outcome.dry else type(result).__name__.lower()
        for _, result in report.outcome.results
    )
    return {
        "node": report.snap.node.name,
        "armed": report.armed,
        "workloads": len(report.snap.workloads),
        "promised": quantities(report.resolution.ledger.promised),
        "free": quantities(report.resolution.ledger.free),
        "held": len(report.held),
        "drifted": len(report.drifts),
        "lastPlan": ", ".join(f"{n} {outcome}" for outcome, n in results.items()) or "nothing to change",
        "refused": [f"{_named(c)}: {r.reason}" for c, r in report.outcome.refused() if report.armed][:20],
        "faults": dict(report.faults),
        "notes": [*map(str, report.resolution.notes), *report.plan.notes],
        "ringCpuMs": round(report.cpu_s * 1000, 3),
    }


def _named(change: Change) -> str:
    if isinstance(change, ValueChange):
        return f"{change.setting} = {knob.render(change.setting.knob, change.new)}"
    return f"{type(change).__name__.lower()} {change.target}"


def journal(kernel: Kernel) -> list[dict[str, Any]]:
    owners = kernel.owners
    present = kernel.settings
    return [
        {
            "setting": str(setting),
            "original": knob.render(setting.knob, value),
            "present": knob.render(setting.knob, present.get(setting)),
            "owner": owners.get(setting, ""),
        }
        for setting, value in kernel.originals.items()
    ]


def drift(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "setting": str(d.setting),
            "ours": knob.render(d.setting.knob, d.ours),
            "found": knob.render(d.setting.knob, d.theirs),
            "reasserted": d.reasserted,
            "yielded": d.yielded,
        }
        for d in report.drifts
    ]


def reverted(outcome: Outcome) -> dict[str, Any]:
    """Values given back, those left with the reason, cgroups removed, and those that stay as something is in them."""
    values = [r for c, r in outcome.results if isinstance(c, ValueChange)]
    refused = [(c.setting if isinstance(c, ValueChange) else c.target, c, r.reason) for c, r in outcome.refused()]
    return {
        "restored": sum(not isinstance(r, Refused) for r in values),
        "removed": sum(isinstance(c, Remove) and isinstance(r, Applied) for c, r in outcome.results),
        "left": [{"setting": str(what), "reason": why} for what, c, why in refused if isinstance(c, ValueChange)],
        "kept": [{"target": str(what), "reason": why} for what, c, why in refused if not isinstance(c, ValueChange)],
    }


def explanation(
    report: Report,
    kernel: Kernel,
    target: TargetId,
    name: str | None,
    *,
    wide: bool = False,
    said: EffectiveStrategy | None = None,
) -> dict[str, Any]:
    """Every setting of a target, or one: who asked, who lost, what clamped, what it was before us, who changed it.

    `said` is what strategies say of the node, and what explains it while no setting is its own.
    """
    if target == NODE and report.snap.groups.get(NODE) is None:
        return _node_explanation(report, said or EffectiveStrategy())
    if name == "network" and (target in report.snap.workloads):
        return traffic.explanation(report, target)
    if name in DEEDS:
        return evicting.explanation(report, target, name)
    explained = explain(
        target,
        name,
        replace(report.snap, settings=kernel.settings),
        report.plan,
        originals=kernel.originals,
        holds=report.held,
        effective=report.effective.get(target),
    )
    on_disks = tuple(shown.notes_of(report.snap, target, name or ""))
    notes = (*explained.notes, *on_disks, *_drift_notes(report, target), *interference_notes(report, target))
    explained = replace(explained, notes=notes)
    seen = [("seen", line) for line in on_disks] + [
        ("absent", line) for line in absent_devices([name or ""], report.snap)
    ]
    text = "\n".join([render_text(explained, wide=wide), *(f"  {word:<11} {line}" for word, line in seen)])
    return {**schema.plain(explained), "text": text}


def _node_explanation(report: Report, said: EffectiveStrategy) -> dict[str, Any]:
    stages, notes = evicting.ladders(report), list(unmeasured(report.snap.node, said.strategy))
    shown = [{"field": path, "value": value, "saidBy": origin} for path, value, origin in rows(said)]
    lines = [f"  {s['field']} = {s['value']}  ({s['saidBy']})" for s in shown]
    text = ["node: what its strategies say, all of them merged", *lines] if lines else ["node: no strategy selects it"]
    text += [f"  not heeded: {note}" for note in notes]
    return {"target": NODE, "strategy": shown, "notes": notes, "eviction": stages, "text": "\n".join([*text, *stages])}


def interference_notes(report: Report, target: TargetId) -> Iterator[str]:
    """For both sides."""
    name = target.removeprefix("workload/")
    for i in report.interference:
        if i.victim == name:
            yield f"suffers from {i.antagonist}: {i.suffering}; {i.evidence}; {i.action}"
        elif i.antagonist == name:
            yield f"slows {i.victim}, which {i.suffering}; {i.evidence}; {i.action}"


def _drift_notes(report: Report, target: TargetId) -> Iterator[str]:
    for d in report.drifts:
        if d.setting.target == target:
            ours, theirs = knob.render(d.setting.knob, d.ours), knob.render(d.setting.knob, d.theirs)
            times = counted(d.reasserted, "time")
            now = f"left at theirs after {times}" if d.yielded else f"put back {times} in ten minutes"
            ago = f"{max(0.0, report.at.now - d.at):.0f} s ago"
            yield f"{d.setting.knob}: someone else changed {ours} to {theirs}, {ago}; {now}"
