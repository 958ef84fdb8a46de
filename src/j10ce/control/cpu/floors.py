"""CPU floors as weights, from the root down: at every level a group's share covers all floors inside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

from j10ce.control.cpu.confined import ConfinedSiblings
from j10ce.control.cpu.cpusets.owners import chosen_by_others
from j10ce.control.cpu.needs import DEFAULT, TierWeights, foreign, keepable, quota, standing
from j10ce.control.cpu.weights import HEADROOM, Division, Member, divide, grid
from j10ce.model.knob import ROOT, Setting, TargetId
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot


class Level(NamedTuple):
    """One group, its children, and how they divide its capacity."""

    capacity: float  # millicores that the group has for certain
    children: tuple[TargetId, ...]
    members: tuple[Member, ...]  # the children, then the foreign siblings as one
    division: Division
    times: tuple[float, ...]  # millicores of each child, by these weights and on its CPUs


def levels(snap: Snapshot, tiers: TierWeights, held: Mapping[TargetId, float]) -> dict[TargetId, Level]:
    """Every group with its division, parents first. `held` are the rates of the last time, by group."""
    on = grid(snap.support)
    members_of = standing(snap, tiers, on)
    capacity, headroom, cpus = {ROOT: float(snap.node.capacity.cpu)}, {ROOT: HEADROOM}, {ROOT: snap.node.cpus}
    decided: dict[TargetId, Level] = {}
    for group in snap.groups.from_top():
        children = snap.groups.children.get(group, ())
        if not children:
            continue
        here, room = capacity[group], cpus[group]
        cpus |= {c: chosen_by_others(snap, c) & room or room for c in children}
        siblings = ConfinedSiblings(here, room, [cpus[c] for c in children])
        members = (*(members_of[c] for c in children), foreign(snap.groups[group]))
        # A service that starts beside our top group is met as soon as it runs, not only once it was seen.
        beside = DEFAULT if group == ROOT else 0.0
        by_weight = partial(divide, held=held.get(group, 0.0), beside=beside, headroom=headroom[group])
        division = siblings.divide(keepable(members, on, quota(snap, group)), on, by_weight, beside, headroom[group])
        decided[group] = Level(here, children, members, division, tuple(siblings.times(division)))
        for child, time in zip(children, decided[group].times, strict=True):
            capacity[child] = min(time, quota(snap, child))
            headroom[child] = headroom[group] / 2  # what those above have more than they need is divided below
    return decided


def looked_at(snap: Snapshot, decided: Mapping[TargetId, Level]) -> frozenset[Setting]:
    """The settings in force that levels depend on: of whatever is not ours, and the weights that we do not choose."""
    others = [t for t, g in snap.groups.by_target.items() if not g.owned and t != ROOT]
    every = {Setting(t, knob) for t in others for knob in ("cpu.weight", "cpu.idle", "cpu.max", "cpuset.cpus")}
    for level in decided.values():  # what was forgotten goes on in our own groups, at the weight it had before us
        left = [c for c, m in zip(level.children, level.members, strict=False) if not m.free]
        every |= {Setting(c, knob) for c in left for knob in ("cpu.weight", "cpu.idle")}
    return frozenset(every)


def wishes(snap: Snapshot, level: Level, owner: str) -> Iterator[Proposal]:
    """The weight of every child that is ours to choose; of adopted ones only what their floors need."""
    for child, m, shares in zip(level.children, level.members, level.division.shares, strict=False):
        if m.free:
            bound = Bound.WANT
        elif m.raised and m.floor:
            bound = Bound.AT_LEAST
        else:
            continue
        reason = _floor_reason(snap, level, child, m, shares) if m.floor else _plain_reason(snap, child, shares)
        yield Proposal(Setting(child, "cpu.weight"), bound, shares, owner, Rank.POLICY, reason)


def awake(snap: Snapshot, owner: str) -> Iterator[Proposal]:
    """An idle group takes no weight, so nothing could hold its floor: whoever came idle and has one is idle no more."""
    for target, e in snap.entitlements.items():
        s = Setting(target, "cpu.idle")
        if e.chosen and e.floor.cpu and 1.0 in (snap.settings.get(s), snap.originals.get(s)):
            reason = f"floor {spell('cpu', e.floor.cpu)}: an idle group has none"
            yield Proposal(s, Bound.WANT, 0.0, owner, Rank.POLICY, reason)


def _floor_reason(snap: Snapshot, level: Level, target: TargetId, m: Member, shares: float) -> str:
    total, capacity = level.division.total, level.capacity
    got = level.times[level.children.index(target)]
    what = "floor" if target in snap.entitlements else "floors inside need"
    kept = what if got >= m.floor * (1 - 1e-9) else f"cannot hold the {what}"
    need = spell("cpu", math.ceil(m.floor - 1e-6))
    return f"{kept} {need}: {shares:.0f} of {total:.0f} shares is {got:.0f}m of {capacity:.0f}m"


def _plain_reason(snap: Snapshot, target: TargetId, shares: float) -> str:
    e = snap.entitlements.get(target)
    return f"{shares:.0f} shares, " + (f"profile {e.profile}" if e else "no floor inside")
