"""`cache`: ways of the last-level cache and memory bandwidth, by groups of resctrl."""

from __future__ import annotations

from collections.abc import Iterator

from j10ce.control.cache.groups import ROOTS, CacheShare, divide
from j10ce.control.cache.shares import WHOLE, bandwidth, ways
from j10ce.control.controller import Controller, Unconfigured
from j10ce.model.kinds import CacheSection
from j10ce.model.knob import Setting, Value, format_cpus, kind_of, resctrl
from j10ce.model.machine.cache import CacheControl
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot


class Caches(Unconfigured):
    """Speaks anew when workloads or strategies change. Groups that others make in between are heeded from then on;
    until then the kernel refuses what is too much, in its own words."""

    name = "cache"
    steady = True

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        offered = snap.node.cache
        if not snap.supports("resctrl.group") or not (offered.ways or offered.bandwidth):
            return
        theirs = sum(kind_of(t) == "resctrl" and not piece.owned for t, piece in snap.pieces.items())
        division = divide(snap, offered.groups - theirs)
        valued = {}
        for name, share in division.shares.items():
            valued[name] = wishes = list(_values(share, offered))
            for setting, value, why in wishes:
                yield self._want(setting, value, why)
        for target, (group, why) in division.homes.items():
            empty = group != ROOTS and not valued[group]
            home, reason = (ROOTS, _unable(offered)) if empty else (group, why)
            yield self._want(Setting(target, "resctrl.group"), home, reason)

    def _want(self, setting: Setting, value: Value, why: str) -> Proposal:
        return Proposal(setting, Bound.WANT, value, self.name, Rank.POLICY, why)


def _values(share: CacheShare, control: CacheControl) -> Iterator[tuple[Setting, Value, str]]:
    target = resctrl(share.name)
    if control.ways and (held := ways(share.cache, control.ways)) is not None:
        why = f"ways {format_cpus(held)} of {control.ways.count}: {_range(share.cache)} of the cache, {share.why}"
        for cache in control.ways.caches:
            yield Setting(target, "resctrl.l3", cache), held, why
    if control.bandwidth and (rate := bandwidth(share.cache, control.bandwidth)) is not None:
        why = f"{share.cache.memory_bandwidth_percent} % of the bandwidth, in {control.bandwidth.unit}, {share.why}"
        for cache in control.bandwidth.caches:
            yield Setting(target, "resctrl.mb", cache), rate, why


def _range(cache: CacheSection) -> str:
    return f"{cache.llc_start_percent or 0} to {WHOLE if not cache.llc_end_percent else cache.llc_end_percent} %"


def _unable(control: CacheControl) -> str:
    """Why nothing of what is asked for can be said to this CPU."""
    if control.bandwidth and control.bandwidth.unit == "MB/s":
        return "resctrl is mounted with mba_MBps: a percentage of bandwidth means nothing there"
    has = [name for name, offered in (("cache", control.ways), ("bandwidth", control.bandwidth)) if offered]
    return f"the CPU divides {' and '.join(has) or 'nothing'} only"


_: Controller = Caches(Caches.Config())
