"""A report that fits: totals always, then what is wrong, then what the fleet counts on, then the rest until full."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, Final, NamedTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from j10ce.errors import cut
from j10ce.model.bounds import MOST_ITEMS, MOST_REPORT
from j10ce.model.kinds import NodeReport, ReservationReport
from j10ce.model.parts.totals import TopologyReport
from j10ce.model.schema import encode

ROOM: Final = MOST_REPORT - 2048  # what travels around a report is not part of it
MOST_REASON: Final = 500  # characters of one reason, where there are many
MOST_TOPOLOGY: Final = 8192  # bytes of a topology, likewise; every machine that is built has less

MOST_ZONES: Final = 32  # memory nodes, likewise: each takes a quarter of a kilobyte
MOST_PAIRS: Final = 8  # of who suffers from whom, likewise; the worst come first
MOST_NAMES: Final = 16  # of workloads that one policy does not protect, likewise


class Item(NamedTuple):
    """One entry of a part of the report."""

    part: str
    entry: Any  # a struct, or the name and the value of an entry of a mapping

    @property
    def size(self) -> int:
        entry = self.entry if isinstance(self.entry, Struct) else _Pair(*self.entry)
        return len(encode(entry)) + 1


class _Pair(Struct):
    name: str
    value: Any


def fitted(report: NodeReport) -> NodeReport:
    """The report, without what is beyond its size; `left_out` counts that, by part.

    Floors come with those that do not hold first, and then by what their workloads use.
    """
    if len(encode(report)) <= ROOM and _few(report):
        return report
    left = dict[str, int]()
    bare = replace(report, effective=(), failing={}, reservations=(), claimed={}, topology=_brief(report, left))
    if len(report.zones) > MOST_ZONES:
        bare, left["zones"] = replace(bare, zones={}), len(report.zones)
    if beyond := report.interference[MOST_PAIRS:]:
        bare, left["interference"] = replace(bare, interference=report.interference[:MOST_PAIRS]), len(beyond)
    room, taken = ROOM - len(encode(bare)), list[Item]()
    counts: dict[str, int] = {}
    for item in _by_weight(report):
        room -= item.size
        if room > 0 and counts.get(item.part, 0) < MOST_ITEMS:
            counts[item.part] = counts.get(item.part, 0) + 1
            taken.append(item)
        else:
            left[item.part] = left.get(item.part, 0) + 1
    return replace(
        bare,
        effective=tuple(_of("effective", taken)),
        failing=dict(_of("failing", taken)),
        reservations=tuple(sorted(_of("reservations", taken), key=attrgetter("source"))),
        claimed=dict(_of("claimed", taken)),
        left_out=left,
    )


def _brief(report: NodeReport, left: dict[str, int]) -> TopologyReport | UnsetType:
    """Counts alone, where lists of CPUs would take the room of what is wrong."""
    whole = report.topology
    if whole is UNSET or len(encode(whole)) <= MOST_TOPOLOGY:
        return whole
    left["topology"] = len(whole.sockets) + len(whole.numa_nodes) + len(whole.l3_caches)
    return replace(whole, sockets=(), numa_nodes=(), l3_caches=())


def _few(report: NodeReport) -> bool:
    parts = (report.effective, report.failing, report.reservations, report.claimed)
    return all(len(part) <= MOST_ITEMS for part in parts)


def _by_weight(report: NodeReport) -> Iterable[Item]:
    short = [f for f in report.effective if f.reason]
    yield from (Item("effective", replace(f, reason=cut(f.reason, MOST_REASON))) for f in short)
    yield from (Item("failing", (name, cut(why, MOST_REASON))) for name, why in report.failing.items())
    yield from (Item("reservations", _short(r)) for r in report.reservations)
    yield from (Item("claimed", entry) for entry in report.claimed.items())
    yield from (Item("effective", f) for f in report.effective if not f.reason)


def _short(report: ReservationReport) -> ReservationReport:
    names = report.unprotected_workloads[:MOST_NAMES]
    return replace(report, refused=cut(report.refused, MOST_REASON), unprotected_workloads=names)


def _of(part: str, taken: Iterable[Item]) -> Iterable[Any]:
    return (item.entry for item in taken if item.part == part)
