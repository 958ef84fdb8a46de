"""Which groups there are, and who is in which: one for each profile, one for a workload of which something is said
alone. A CPU has few (16 or so, the root's among them): whoever finds none left shares its profile's, or the root's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from j10ce.model.kinds import CacheSection, Tier
from j10ce.model.knob import TargetId, group_name
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement

PREFIX: Final = "j10ce-"
ROOTS: Final = ""  # the root's group
SILENT: Final = CacheSection()
APART: Final = "tier system stays in the root's group"


class CacheShare(NamedTuple):
    """One group: what its members have together."""

    name: str
    cache: CacheSection
    why: str


class Home(NamedTuple):
    group: str
    why: str


class CacheDivision(NamedTuple):
    shares: Mapping[str, CacheShare]
    homes: Mapping[TargetId, Home]


def divide(snap: Snapshot, room: int) -> CacheDivision:
    """`room`: groups that can be ours."""
    asking = [e for e in snap.entitlements.values() if e.chosen and e.cache != SILENT and e.tier is not Tier.SYSTEM]
    common = {_class(e): _common(e) for e in sorted(asking, key=_importance) if not _alone(e, snap)}
    apart = {e.target: e for e in sorted(asking, key=lambda e: _own_importance(e, snap)) if _differs(e, snap, common)}
    kept = {share.name: share for share in [*common.values(), *map(_own, apart.values())][: max(0, room)]}
    full = f"the CPU has room for {max(0, room)} group{'' if room == 1 else 's'} of ours, which others need more"
    homes = {e.target: _home(e, e.target in apart, kept, full) for e in asking}
    system = (e for e in snap.entitlements.values() if e.chosen and e.cache != SILENT and e.tier is Tier.SYSTEM)
    return CacheDivision(_used(kept, homes.values()), {**homes, **{e.target: Home(ROOTS, APART) for e in system}})


def _home(e: Entitlement, apart: bool, kept: Mapping[str, CacheShare], full: str) -> Home:
    own, shared = _own(e).name, _class(e)
    if apart and own in kept:
        return Home(own, "something is said of its cache alone")
    if shared in kept:
        return Home(shared, f"shares the group of {_called(e)}" + (f": {full}" if apart else ""))
    return Home(ROOTS, f"stays in the root's group: {full}")


def _used(kept: Mapping[str, CacheShare], homes: Iterable[Home]) -> dict[str, CacheShare]:
    inside = {home.group for home in homes}
    return {name: share for name, share in kept.items() if name in inside}


def _importance(e: Entitlement) -> tuple[int, str]:
    return -e.tier.rank, e.profile


def _own_importance(e: Entitlement, snap: Snapshot) -> tuple[int, int, str]:
    return -e.tier.rank, -(snap.workloads[e.target].priority or 0), e.target


def _alone(e: Entitlement, snap: Snapshot) -> bool:
    return snap.workloads[e.target].overrides.sections.cache != SILENT


def _differs(e: Entitlement, snap: Snapshot, common: Mapping[str, CacheShare]) -> bool:
    """One of which the same is said as of all others of its profile needs no group of its own."""
    shared = common.get(_class(e))
    return _alone(e, snap) if shared is None else shared.cache != e.cache


def _called(e: Entitlement) -> str:
    return f"profile {e.profile}" if e.profile else f"tier {e.tier.value}"


def _class(e: Entitlement) -> str:
    return PREFIX + group_name(e.profile or e.tier.value)


def _common(e: Entitlement) -> CacheShare:
    return CacheShare(_class(e), e.cache, _called(e))


def _own(e: Entitlement) -> CacheShare:
    name = e.target.partition("/")[2]
    return CacheShare(PREFIX + group_name(name.replace("/", "_")), e.cache, name)
