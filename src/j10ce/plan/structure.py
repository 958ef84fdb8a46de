"""Cgroups to make, controllers to enable, processes to move in, and what to remove."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from j10ce.model.knob import FREEZER, KNOBS, MADE_KINDS, Setting, TargetId, kind_of
from j10ce.model.plan import Enable, Join, Make, Remove, Structural, ValueChange
from j10ce.model.snapshot import Snapshot
from j10ce.plan.rights import Rights


def structure(snap: Snapshot, values: Collection[ValueChange] = (), rights: Rights | None = None) -> list[Structural]:
    """What the tree needs before `values` can be written, and after. Unordered: see `order`."""
    rights = rights or Rights.of(snap)
    return [
        *_makes(snap, rights),
        *_pieces_made(snap, values),
        *_enables(snap, values),
        *_joins(snap, rights),
        *_removes(snap, rights),
    ]


def _makes(snap: Snapshot, rights: Rights) -> Iterable[Make]:
    above = {up for target in snap.workloads for up in snap.groups.ancestors(target)}
    for target in rights.top_down:
        group = snap.groups[target]
        needed = target in rights.ours and (target in above or target in snap.workloads)
        if group.owned and not group.exists and needed:
            yield Make(
                target, group.path, "a workload needs it" if target in snap.workloads else "workloads live below it"
            )


def _pieces_made(snap: Snapshot, values: Collection[ValueChange]) -> Iterable[Make]:
    """Beside cgroups a target is made for the first value that somebody wants there."""
    wanted = {c.setting.target for c in values if kind_of(c.setting.target) in MADE_KINDS}
    for target in sorted(wanted - snap.pieces.keys()):
        yield Make(target, target.partition("/")[2], "a value is wanted there")


def _enables(snap: Snapshot, values: Iterable[ValueChange]) -> Iterable[Enable]:
    """A child has a controller's files only where every ancestor passes the controller on (cgroup v2)."""
    missing: dict[TargetId, set[str]] = {}
    needed_by: dict[TargetId, Setting] = {}
    for change in values:
        s = change.setting
        if s.knob not in KNOBS or KNOBS[s.knob].controller in ("", FREEZER) or not _passed_down(s.knob, snap):
            continue
        for up in snap.groups.ancestors(s.target):
            if _lacks(up, KNOBS[s.knob].controller, change, snap):
                missing.setdefault(up, set()).add(KNOBS[s.knob].controller)
                needed_by[up] = min(s, needed_by.get(up, s))
    return [Enable(up, frozenset(names), f"{needed_by[up]} needs it") for up, names in missing.items()]


def _passed_down(knob: str, snap: Snapshot) -> bool:
    support = snap.support.get(knob)
    return support is not None and support.via != "cgroup1"


def _lacks(target: TargetId, controller: str, change: ValueChange, snap: Snapshot) -> bool:
    """Where nobody looked, a value that could not be read is the sign of a missing file."""
    enabled = snap.groups[target].enabled
    return change.old is None if enabled is None else controller not in enabled


def _joins(snap: Snapshot, rights: Rights) -> Iterable[Join]:
    for target in sorted(snap.workloads):
        if target in rights.ours and target in snap.groups.by_target:
            for pid, proof in snap.workloads[target].waiting:
                yield Join(target, pid, "waits to be put in", proof)


def _removes(snap: Snapshot, rights: Rights) -> Iterable[Remove]:
    for target in sorted(rights.spent):
        yield Remove(target, "its workload is gone" if target in rights.dead else "nothing needs it any more")
