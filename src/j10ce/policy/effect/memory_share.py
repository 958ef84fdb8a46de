"""What memory.min and memory.low are really worth: the kernel's own rules, mm/page_counter.c. Amounts are pages.

A group right below the root has what it asks for. Below that, children that claim and use more than their parent has
share it in proportion to what they use; with `memory_recursiveprot` what nobody claims goes to whoever uses more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from j10ce.model.knob import ROOT, Setting, TargetId
from j10ce.model.snapshot import Foreign, Snapshot


def effective_protection(
    usage: int, parent_usage: int, setting: int, parent_effective: int, siblings_protected: int, recursive: bool
) -> int:
    """The kernel's function of this name, to the letter: integer division and all."""
    protected = min(usage, setting)
    if siblings_protected > parent_effective:
        return protected * parent_effective // siblings_protected
    if not recursive or parent_usage <= siblings_protected or usage <= protected:
        return protected
    unclaimed = parent_effective - siblings_protected
    return protected + unclaimed * (usage - protected) // (parent_usage - siblings_protected)


class Protected(NamedTuple):
    """One kind of protection through the whole tree."""

    knob: str
    setting: Mapping[TargetId, int]
    effective: Mapping[TargetId, int]
    claimed: Mapping[TargetId, int]  # by group: what its children claim and use, foreign ones included


def distribute(snap: Snapshot, knob: str, usage: Mapping[TargetId, int], *, full: bool) -> Protected:
    """`full`: as if foreign groups, too, used all that they claim."""
    children, most = snap.groups.children, snap.node.memory // snap.node.page
    setting = {t: min(most, pages(snap, t, knob)) for t in usage}
    effective: dict[TargetId, int] = {}
    claimed: dict[TargetId, int] = {}
    for parent in snap.groups.from_top():
        below = children.get(parent, ())
        theirs = sum(_foreign_claim(f, knob, snap.node.page, full) for f in snap.groups[parent].foreign)
        claimed[parent] = sum(min(usage[c], setting[c]) for c in below) + theirs
        for child in below:
            if parent == ROOT:  # unless it uses nothing: then the kernel has nothing to protect
                effective[child] = setting[child] if usage[child] else 0
            else:
                effective[child] = effective_protection(
                    usage[child],
                    usage[parent],
                    setting[child],
                    effective[parent],
                    claimed[parent],
                    snap.node.recursive_protection,
                )
    return Protected(knob, setting, effective, claimed)


def present_usage(snap: Snapshot) -> dict[TargetId, int]:
    return {t: int(snap.groups[t].memory_current) // snap.node.page for t in snap.groups.from_top()}


def full_usage(snap: Snapshot) -> dict[TargetId, int]:
    """As if everyone used at least what was promised or is protected: the day on which a floor is needed."""
    usage = present_usage(snap)
    for target in reversed(list(usage)):
        e = snap.entitlements.get(target)
        below = snap.groups.children.get(target, ())
        claims = [pages(snap, target, "memory.min"), pages(snap, target, "memory.low")] if not below else []
        promised = -(-e.floor.memory // snap.node.page) if e else 0
        theirs = sum(int(_most_used(f)) // snap.node.page for f in snap.groups[target].foreign)
        usage[target] = max(usage[target], promised, *claims, sum(usage[c] for c in below) + theirs)
    return usage


def pages(snap: Snapshot, target: TargetId, knob: str) -> int:
    """A setting in whole pages, never more than the machine has."""
    value = snap.settings.get(Setting(target, knob))
    most = snap.node.memory // snap.node.page
    if not isinstance(value, float | int):
        return 0
    return most if value == math.inf else min(most, int(value) // snap.node.page)


def _most_used(f: Foreign) -> float:
    return max(f.memory_current, *(n for n in (f.memory_min, f.memory_low) if n != math.inf), 0.0)


def _foreign_claim(f: Foreign, knob: str, page: int, full: bool) -> int:
    setting = f.memory_min if knob == "memory.min" else f.memory_low
    return int(min(_most_used(f) if full else f.memory_current, setting)) // page
