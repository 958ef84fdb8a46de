"""`memory-qos`: memory.min, memory.low and memory.high as percentages of the request, and what some kernels add.

Watermarks, priorities and limits of page cache are the kernel's own where it has files for them; elsewhere
`memory-reclaim` does what it can of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from j10ce.control.controller import Controller, Unconfigured
from j10ce.control.memory.page_cache import VENDOR_KNOBS, vendor_values
from j10ce.control.memory.parts import allowed, asked, part_shares
from j10ce.control.memory.protection import by_percent, claimed, slowed
from j10ce.model.knob import Setting, TargetId
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement, Part, Workload


class MemoryQos(Unconfigured):
    name = "memory-qos"
    steady = True

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        for e in snap.entitlements.values():
            if e.chosen:
                for knob, value, reason in self._wishes(e, snap):
                    yield from self._want(snap, e.target, knob, value, reason)
                yield from self._of_parts(e, snap)
                yield from self._of_vendors(e, snap)

    def _want(self, snap: Snapshot, target: TargetId, knob: str, value: float, reason: str) -> Iterator[Proposal]:
        if snap.supports(knob):
            yield Proposal(Setting(target, knob), Bound.WANT, value, self.name, Rank.POLICY, reason)

    def _of_parts(self, e: Entitlement, snap: Snapshot) -> Iterator[Proposal]:
        page, kept, slows = snap.node.page, by_percent(e, snap.node.page), bool(e.memory.throttling_percent)
        for share in part_shares(snap, snap.workloads[e.target]) if slows or any(kept) else ():
            why = f"{share.fraction:.0%} of what {e.target} has, profile {e.profile}"
            for knob, value in zip(("memory.min", "memory.low"), share.of(kept, page), strict=True):
                if value:
                    yield from self._want(snap, share.target, knob, value, why)
            if slows:
                value = _high(e, share.part, snap, share.of(claimed(e, page), page).min)
                yield from self._want(snap, share.target, "memory.high", value, _slows(e))

    def _of_vendors(self, e: Entitlement, snap: Snapshot) -> Iterator[Proposal]:
        """For the workload and each of its parts; of page cache by the limit of each."""
        if not any(knob in snap.support and snap.supports(knob) for knob in VENDOR_KNOBS):
            return
        w, why = snap.workloads[e.target], f"profile {e.profile}"
        places = [(e.target, allowed(w)), *((s.target, allowed(s.part)) for s in part_shares(snap, w))]
        for target, limit in places:
            for knob, value in vendor_values(e.memory, limit, snap.node.page).items():
                yield from self._want(snap, target, knob, value, why)

    def _wishes(self, e: Entitlement, snap: Snapshot) -> Iterator[tuple[str, float, str]]:
        m, page = e.memory, snap.node.page
        of_request = f"% of the {spell('memory', e.requests.memory)} request, profile {e.profile}"
        kept = by_percent(e, page)
        if m.min_percent is not UNSET:
            yield "memory.min", kept.min, f"{m.min_percent} {of_request}"
        if m.low_percent is not UNSET:
            yield "memory.low", kept.low, f"{m.low_percent} {of_request}"
        if m.throttling_percent is not UNSET:
            yield "memory.high", _high(e, snap.workloads[e.target], snap, claimed(e, page).min), _slows(e)


def _high(e: Entitlement, of: Part | Workload, snap: Snapshot, kept: float) -> float:
    return slowed(e, asked(of), allowed(of), snap.node.memory, snap.node.page, kept)


def _slows(e: Entitlement) -> str:
    return f"slows down {e.memory.throttling_percent} % of the way from request to limit, profile {e.profile}"


_: Controller = MemoryQos(MemoryQos.Config())
