"""Which objects ask for what this node could not do."""

from __future__ import annotations

from j10ce.agent.ring.ring import Report
from j10ce.model.knob import TargetId
from j10ce.model.plan import Change, ValueChange


def failing(report: Report) -> dict[str, str]:
    """Object -> the first of its writes that was refused, and why: a rollout of it stops on that."""
    found: dict[str, str] = {}
    for change, refused in report.outcome.refused() if report.armed else ():
        for source in _asked_by(change, report):
            found.setdefault(source, f"{_named(change)} was refused: {refused.reason}")
    return found


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
