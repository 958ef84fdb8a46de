"""From the ring's last report to what others see: the node's status, and the floors that were promised and hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final

from j10ce import __version__
from j10ce.agent.report.reservations import best_effort, claimed, reservations
from j10ce.agent.ring.objects import quantities
from j10ce.agent.ring.ring import Report
from j10ce.model.kinds import Capability, Condition, EffectiveFloor, NodeReport, Tier
from j10ce.model.knob import NODE, TargetId
from j10ce.model.machine import topology
from j10ce.model.parts.totals import TierTotal
from j10ce.model.plan import Change, ValueChange
from j10ce.model.quantity import Quantity
from j10ce.model.resource import RESOURCES
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.strategy import merged

USAGE_S: Final = 300.0
RECENT_S: Final = 10.0
OVER_MINUTES: Final = (5, 10, 30)
METERED: Final = (("cpu", "cpu.usage", 1000.0), ("memory", "memory.working_set", 1.0))  # and the ledger's unit


def node_report(report: Report, document: NodeDocument) -> NodeReport:
    snap, effective = report.snap, _effective(report)
    window = {name: snap.readings.window(NODE, f"{name}.pressure", 10.0).mean() for name in ("cpu", "memory", "io")}
    return NodeReport(
        heartbeat=datetime.fromtimestamp(round(report.at.wall, 3), UTC),
        boot_id=snap.node.boot_id,
        agent_version=__version__,
        armed=report.armed,
        document=document.hash,
        capacity=quantities(snap.node.capacity),
        topology=topology.report(snap.node.topology),
        reserved=quantities(report.resolution.ledger.promised),
        claimed=claimed(report),
        best_effort=best_effort(report),
        usage=_usage(report),
        usage_over=_usage_over(report),
        pressure={name: round(share, 4) for name, share in window.items() if share is not None},
        capabilities=capabilities(report),
        workloads=len(snap.workloads),
        reservations=reservations(report, document),
        effective=tuple(effective),
        failing={**contradicted(document), **failing(report)},
        conditions=tuple(_conditions(report, effective)),
        tiers=tiers(report),
        interference=report.interference,
        last_plan=dict(Counter(type(result).__name__.lower() for _, result in report.outcome.results)),
    )


def capabilities(report: Report) -> tuple[Capability, ...]:
    return tuple(
        Capability(feature=knob, ok=s.ok, via=s.via, needs=s.needs, instead=s.instead)
        for knob, s in sorted(report.snap.support.items())
    )


def floors(report: Report) -> dict[str, tuple[float, float]]:
    """resource -> (promised, effective), summed over the node; CPUs, bytes, bits and bytes a second."""
    sums = dict.fromkeys(RESOURCES, (0.0, 0.0))
    for e in report.effective.values():
        for resource, promised, has, _ in e.rows():
            before = sums[resource]
            sums[resource] = before[0] + promised, before[1] + min(promised, has)
    return {name: (p / 1000, h / 1000) if name == "cpu" else (p, h) for name, (p, h) in sums.items()}


def effective_floors(report: Report, target: TargetId) -> list[EffectiveFloor]:
    """One line per resource that the workload was promised."""
    e, entitled = report.effective.get(target), report.snap.entitlements.get(target)
    if e is None or entitled is None:
        return []
    sources = {s.field: s.object for s in entitled.sources}
    return [
        EffectiveFloor(
            node=report.snap.node.name,
            workload=target.removeprefix("workload/"),
            resource=resource,
            promised=amount(resource, promised),
            effective=amount(resource, min(promised, has)),
            reason=reason if has < promised else "",
            source=sources.get(f"floor.{resource}", ""),
        )
        for resource, promised, has, reason in e.rows()
        if promised
    ]


def amount(resource: str, number: float) -> Quantity:
    whole = Fraction(int(number))
    return Quantity(whole / 1000 if resource == "cpu" else whole)


def _effective(report: Report) -> list[EffectiveFloor]:
    """Broken promises first, then by what the workloads use: a report that is too long is cut at its end."""
    used = {t.removeprefix("workload/"): _recent(report, t, "cpu.usage") for t in report.effective}
    every = [f for target in report.effective for f in effective_floors(report, target)]
    return sorted(every, key=lambda f: (not f.reason, -used[f.workload], f.workload, f.resource))


def failing(report: Report) -> dict[str, str]:
    """Object -> the first of its writes that was refused, and why: a rollout of it stops on that."""
    refusals: dict[str, str] = {}
    for change, refused in report.outcome.refused() if report.armed else ():
        for source in _asked_by(change, report):
            refusals.setdefault(source, f"{_named(change)} was refused: {refused.reason}")
    return refusals


def contradicted(document: NodeDocument) -> dict[str, str]:
    """Strategies of which a field is left out here: one of higher priority says something that excludes it."""
    left_out = merged(document.strategies).left_out
    return {out.origin: f"{path} is left out: {out.why}" for path, out in left_out.items()}


def _asked_by(change: Change, report: Report) -> list[str]:
    """The profile of the workload, and whoever promised it what the setting guarantees."""
    target = change.setting.target if isinstance(change, ValueChange) else change.target
    entitled = report.snap.entitlements.get(_workload(target))
    if entitled is None:
        return []
    resource = change.setting.knob.partition(".")[0] if isinstance(change, ValueChange) else ""
    return [s.object for s in entitled.sources if s.field in ("profile", f"floor.{resource}")]


def _workload(target: TargetId) -> TargetId:
    """A part is its workload's."""
    kind, _, rest = target.partition("/")
    return TargetId(f"workload/{rest.rpartition('/')[0]}") if kind == "part" else target


def _named(change: Change) -> str:
    if isinstance(change, ValueChange):
        return f"{change.setting.knob} of {change.setting.target}"
    return f"{type(change).__name__.lower()} of {change.target}"


def tiers(report: Report) -> dict[str, TierTotal]:
    """Of every tier that has workloads."""
    members: dict[Tier, list[TargetId]] = {}
    for target, entitled in report.snap.entitlements.items():
        if target in report.snap.workloads:
            members.setdefault(entitled.tier, []).append(target)
    return {tier.value: _total(report, targets) for tier, targets in members.items()}


def _total(report: Report, targets: list[TargetId]) -> TierTotal:
    floors = [f for target in targets for f in effective_floors(report, target)]
    cpu = sum(_recent(report, target, "cpu.usage") for target in targets)
    memory = sum(_recent(report, target, "memory.working_set") for target in targets)
    return TierTotal(
        workloads=len(targets),
        promised=_sums((f.resource, f.promised) for f in floors),
        effective=_sums((f.resource, f.effective) for f in floors),
        used={"cpu": amount("cpu", cpu * 1000), "memory": amount("memory", memory)},
    )


def _sums(amounts: Iterable[tuple[str, Quantity]]) -> dict[str, Quantity]:
    sums: dict[str, Fraction] = {}
    for resource, quantity in amounts:
        sums[resource] = sums.get(resource, Fraction(0)) + quantity.amount
    return {resource: Quantity(total) for resource, total in sums.items()}


def _recent(report: Report, target: TargetId, metric: str) -> float:
    return report.snap.readings.window(target, metric, RECENT_S).mean() or 0.0


def _usage(report: Report) -> dict[str, dict[str, Quantity]]:
    usage: dict[str, dict[str, Quantity]] = {}
    for resource, metric, scale in METERED:
        window = report.snap.readings.window(NODE, metric, USAGE_S)
        levels = {f"p{share}": window.quantile(share / 100) for share in (50, 95, 98)} | {"max": window.peak()}
        if known := {name: amount(resource, n * scale) for name, n in levels.items() if n is not None}:
            usage[resource] = known  # of a first report nothing is known yet; CRDs take no empty entry
    return usage


def _usage_over(report: Report) -> dict[str, dict[str, dict[str, Quantity]]]:
    """Over each time of which more than half was measured."""
    over = {f"{minutes}m": _aggregates(report, minutes * 60.0) for minutes in OVER_MINUTES}
    return {name: usage for name, usage in over.items() if usage}


def _aggregates(report: Report, span_s: float) -> dict[str, dict[str, Quantity]]:
    usage: dict[str, dict[str, Quantity]] = {}
    for resource, metric, scale in METERED:
        window, period_s = report.snap.readings.window(NODE, metric, span_s), _period_s(report, metric)
        mean = window.mean()
        if mean is None or len(window) * period_s <= span_s / 2:
            continue
        levels = {f"p{share}": window.quantile(share / 100) for share in (50, 90, 95, 99)}
        usage[resource] = {"avg": amount(resource, mean * scale)} | {
            name: amount(resource, level * scale) for name, level in levels.items() if level is not None
        }
    return usage


def _period_s(report: Report, metric: str) -> float:
    """Between two samples, as of the last ones."""
    timed = report.snap.readings.timed(NODE, metric, RECENT_S)
    return (timed[-1][0] - timed[0][0]) / (len(timed) - 1) if len(timed) > 1 else 1.0


def _conditions(report: Report, effective: Iterable[EffectiveFloor]) -> list[Condition]:
    broken = [f for f in effective if f.reason]
    faults = "; ".join(f"{name}: {why}" for name, why in report.faults.items())
    return [
        _condition(
            "FloorsEffective", not broken, "Held" if not broken else "Annulled", broken[0].reason if broken else ""
        ),
        _condition("ControllersHealthy", not faults, "Answering" if not faults else "Failing", faults),
        _condition("SettingsOurs", not report.drifts, "Held", f"{len(report.drifts)} settings changed by others"),
    ]


def _condition(name: str, ok: bool, reason: str, message: str) -> Condition:
    return Condition(type=name, status="True" if ok else "False", reason=reason, message="" if ok else message)
