"""What the socket answers about evictions: how far it has come, who is next, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from j10ce.agent.ring.ring import Report
from j10ce.errors import NotFound, cut
from j10ce.model.knob import Deed, Setting, TargetId
from j10ce.model.plan import LadderView


def state(report: Report, target: TargetId) -> str:
    """In a word, where a workload is on its way out; empty where it is not."""
    workload, frozen = report.snap.workloads.get(target), report.snap.settings.get(Setting(target, "cgroup.freeze"))
    asked = {a.target for a in (*report.plan.pending, *report.plan.actions) if a.deed is Deed.EVICT and a.enforced}
    if workload is not None and workload.leaving:
        return "leaving"
    if target in asked:
        return "evicting"
    return "frozen" if frozen == 1.0 else ""


def ladders(report: Report) -> list[str]:
    """One line for each trigger that the node's strategy speaks of."""
    return [f"eviction by {ladder.about}: {ladder.stage}; {ladder.text}{_next(ladder)}" for ladder in report.ladders]


def _next(ladder: LadderView) -> str:
    names = [t.removeprefix("workload/") for t in ladder.targets]
    return f"; first {', then '.join(names)}" if names else ""


def explanation(report: Report, target: TargetId, deed: str) -> dict[str, Any]:
    """Whether something is to be done to a workload, by which trigger, and what is in the way. Raises NotFound."""
    if target not in report.snap.workloads:
        raise NotFound(f"{cut(target)} is not on this machine")
    lines = [*_deeds(report, target, deed), *_places(report, target), *_objections(report, target, deed)]
    text = "\n".join([f"{target} {deed}", *(f"  {line}" for line in lines or ["nothing calls for it"])])
    return {"target": target, "deed": deed, "state": state(report, target), "reasons": lines, "text": text}


def _deeds(report: Report, target: TargetId, deed: str) -> Iterator[str]:
    plan, done = report.plan, report.snap.done
    for action in (*plan.actions, *plan.pending):
        if action.target == target and action.deed.value == deed:
            at = done.get(action.what)
            asked = "asked" if at is None else f"asked {report.at.wall - at:.0f} s ago"
            yield f"{asked if action.enforced else 'proposed only'}: {action.reason}"


def _places(report: Report, target: TargetId) -> Iterator[str]:
    for ladder in report.ladders:
        if target in ladder.targets:
            place = f"number {ladder.targets.index(target) + 1} of {len(ladder.targets)}"
            yield f"{place} to give way by {ladder.about}, stage {ladder.stage}: {ladder.text}"


def _objections(report: Report, target: TargetId, deed: str) -> Iterator[str]:
    for hold in report.held:
        if hold.setting == Setting(target, deed):
            yield f"held by {hold.who}: {hold.why}"
    yield from (note for note in report.plan.notes if note.startswith(f"{deed} of {target} "))
