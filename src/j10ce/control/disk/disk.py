"""`disk`: what is said of disks, and floors of those who were promised something."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from j10ce.control.controller import Controller, Unconfigured
from j10ce.control.disk.follow import DiskCap, DiskRate, Followed, follow
from j10ce.control.disk.inside import passed_in
from j10ce.control.disk.places import capped, leaves, modelled
from j10ce.control.disk.said import wishes
from j10ce.control.disk.weights import reachable, weights
from j10ce.model.kinds import Tier
from j10ce.model.knob import Setting, TargetId, Value, disk
from j10ce.model.machine.disk import Disk
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.resource import Resources, spell
from j10ce.model.snapshot import Snapshot

KNOWN_S: Final = 3.0  # how old a rate may be
EVERY_S: Final = 1.5
WRONG_S: Final = 30.0  # for so long io.cost goes at the end of its range before its model counts as wrong
TRY_AGAIN_S: Final = 600.0
END: Final = 1.05  # of the range
DIRTY_S: Final = 2.0  # of writing, that best effort may have waiting in memory
LEAST_DIRTY: Final = 64 << 20
METRICS: Final = ("disk.read", "disk.write", "disk.riops", "disk.wiops")


class DiskUse(Unconfigured):
    """Floors of a disk with a calibrated io.cost are weights, which hold between two ticks. On others they are caps on
    whoever else uses the disk. A model that turns out wrong is left alone for ten minutes, and the caps take over."""

    name = "disk"

    def __init__(self, config: Unconfigured.Config) -> None:
        super().__init__(config)
        self._followed: dict[str, Followed] = {}
        self._wrong: dict[str, tuple[float, str]] = {}  # until when, and why
        self._stepped = float("-inf")

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        yield from passed_in(snap, self._proposals(snap))

    def _proposals(self, snap: Snapshot) -> Iterator[Proposal]:
        for e in snap.entitlements.values():
            for wish in wishes(snap, e) if e.chosen and e.target in snap.groups.by_target else ():
                if snap.supports(wish.setting.knob):
                    yield self._proposal(wish.setting, wish.value, wish.reason, wish.bound)
        floors = {
            t: e.floor for t, e in snap.entitlements.items() if e.chosen and (e.floor.disk_read or e.floor.disk_write)
        }
        if not floors:
            self._followed, self._wrong = {}, {}
            return
        divided = self._divided(snap)
        if divided:
            yield from self._by_weight(snap, divided, floors)
        yield from self._by_caps(snap, divided, floors)

    def _divided(self, snap: Snapshot) -> Mapping[str, Disk]:
        """Disks that io.cost divides, and does so well."""
        if not (snap.supports("io.cost.qos") and snap.supports("io.cost.model") and snap.supports("io.weight")):
            return {}
        for d in modelled(snap.node.disks):
            if why := _wrong(snap, d):
                self._wrong.setdefault(d.number, (snap.now + TRY_AGAIN_S, why))
        self._wrong = {n: w for n, w in self._wrong.items() if w[0] > snap.now}
        return {d.number: d for d in modelled(snap.node.disks) if d.number not in self._wrong}

    def _by_weight(
        self, snap: Snapshot, divided: Mapping[str, Disk], floors: Mapping[TargetId, Resources]
    ) -> Iterator[Proposal]:
        for d in divided.values():
            read, write = spell("diskRead", d.read_bps), spell("diskWrite", d.write_bps)
            why = f"{d.name} as calibrated: reads {read}/s, writes {write}/s"
            yield self._proposal(Setting(disk(d.number), "io.cost.model"), d.model, why)
            yield self._proposal(Setting(disk(d.number), "io.cost.qos"), d.qos, f"{len(floors)} floors on {d.name}")
        for target, weight in weights(snap).items():
            floor = floors.get(target)
            why = _floor(floor) if floor else "floors inside"
            yield self._proposal(Setting(target, "io.weight"), weight, f"{why}; siblings without one have 100")

    def _by_caps(
        self, snap: Snapshot, divided: Mapping[str, Disk], floors: Mapping[TargetId, Resources]
    ) -> Iterator[Proposal]:
        if not snap.supports("io.max.rbps"):
            return
        places = {d.number: d for d in capped(snap.node.disks)}
        step = not 0 <= snap.now - self._stepped < EVERY_S
        if step:
            self._stepped = snap.now
        for number, d in places.items():
            measured = _measured(d, snap.node.disks)
            held = {t: f for t, f in floors.items() if not (_all_divided(d, snap, divided) and reachable(snap, t))}
            if not held or measured is None:
                self._followed.pop(number, None)
                continue
            if step:
                before = self._followed.get(number, Followed())
                self._followed[number] = follow(before, measured, held, _rates(snap, number, held), snap.now)
            yield from self._counted(snap, number)
            yield from self._caps(snap, measured, held)
        self._followed = {n: f for n, f in self._followed.items() if n in places}

    def _counted(self, snap: Snapshot, number: str) -> Iterator[Proposal]:
        """cgroup v2 counts what a group does with disks where the controller is passed down: for a value, as this one,
        which limits nothing."""
        support = snap.support.get("io.max.riops")
        if support is None or support.via == "cgroup1":
            return
        for target, e in snap.entitlements.items():
            if e.chosen and target in snap.groups.by_target:
                why = "no limit: the kernel counts where something is set"
                yield self._proposal(Setting(target, "io.max.riops", number), math.inf, why)

    def _caps(self, snap: Snapshot, d: Disk, held: Mapping[TargetId, Resources]) -> Iterator[Proposal]:
        followed = self._followed.get(d.number, Followed())
        kept = sum(followed.needs.values())
        for target, cap in followed.caps.items():
            e = snap.entitlements.get(target)
            if e is None or not e.chosen:
                continue
            why = (
                f"{kept:.0%} of {d.name} kept for {_named(held)}; {cap.share:.0%} for this one of {len(followed.caps)}"
            )
            if d.number in self._wrong:
                why += f"; {self._wrong[d.number][1]}"
            for what, value in (("rbps", cap.read_bps), ("wbps", cap.write_bps)):
                setting = Setting(target, f"io.max.{what}", d.number)
                yield self._proposal(setting, value, why)
                yield self._proposal(setting, value, why, Bound.AT_MOST)
            if e.tier is Tier.BESTEFFORT:
                yield from self._dirty(snap, target, cap, d, held)

    def _dirty(
        self, snap: Snapshot, target: TargetId, cap: DiskCap, d: Disk, held: Mapping[TargetId, Resources]
    ) -> Iterator[Proposal]:
        """What best effort has written and the disk has not yet: it would be written back before a holder's pages."""
        needed = snap.readings.window(target, "memory.working_set", 30.0).last()
        if needed is None or not snap.supports("memory.high") or not any(f.disk_write for f in held.values()):
            return
        waiting = max(LEAST_DIRTY, DIRTY_S * cap.write_bps)
        why = f"what it has written and {d.name} has not yet: at most {spell('memory', waiting)} beside what it needs"
        yield self._proposal(Setting(target, "memory.high"), float(round(needed + waiting)), why, Bound.AT_MOST)

    def _proposal(self, setting: Setting, value: Value, why: str, bound: Bound = Bound.WANT) -> Proposal:
        return Proposal(setting, bound, value, self.name, Rank.POLICY, why)


def _measured(d: Disk, disks: Mapping[str, Disk]) -> Disk | None:
    """A volume that nobody measured can do what the slowest of its disks can; None: nobody measured any."""
    if d.calibrated:
        return d
    below = list(leaves(d, disks))
    return below[0] if len(below) == 1 and below[0].calibrated else None


def _all_divided(d: Disk, snap: Snapshot, divided: Mapping[str, Disk]) -> bool:
    return all(leaf.number in divided for leaf in leaves(d, snap.node.disks))


def _rates(snap: Snapshot, number: str, held: Mapping[TargetId, Resources]) -> dict[TargetId, DiskRate]:
    """Of holders, and of everybody else who has used the disk lately."""
    rates, first = {}, f"{METRICS[0]}[{number}]"
    for target, e in snap.entitlements.items():
        span = KNOWN_S if target in held else 4 * KNOWN_S
        if not e.chosen or snap.readings.window(target, first, span).last() is None:
            continue  # as nearly everybody: who never touched the disk has no series
        last = (snap.readings.window(target, f"{m}[{number}]", span).last() for m in METRICS)
        rates[target] = DiskRate(*(value or 0.0 for value in last))
    return rates


def _wrong(snap: Snapshot, d: Disk) -> str:
    """io.cost changes its pace by what the disk really does: at either end of the range the model says another one."""
    window = snap.readings.window(disk(d.number), "io.vrate", WRONG_S)
    busy = snap.readings.window(disk(d.number), "disk.busy", WRONG_S).mean()
    pace = window.mean()
    limits = dict(word.split("=", 1) for word in d.qos.split() if "=" in word)
    if pace is None or busy is None or busy < 0.5 or len(window) < WRONG_S / 3:
        return ""
    try:
        least, most = float(limits["min"]), float(limits["max"])
    except (KeyError, ValueError):
        return ""
    seen = f"io.cost has gone at {pace:.0f} % for {WRONG_S:.0f} s"
    if pace <= least * END:
        return f"{seen}, its least: the model promises more than the disk does; calibrate {d.name} again"
    if pace * END >= most:
        return f"{seen}, its most: the disk does more than the model says; calibrate {d.name} again"
    return ""


def _floor(floor: Resources) -> str:
    both = (("diskRead", floor.disk_read), ("diskWrite", floor.disk_write))
    return "floor of " + " and ".join(f"{name} {spell(name, amount)}/s" for name, amount in both if amount)


def _named(held: Mapping[TargetId, Resources]) -> str:
    """The first three."""
    names = [t.partition("/")[2] for t in sorted(held)]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")


_: Controller = DiskUse(DiskUse.Config())
