"""Links as they are divided now: who has what of them, who sends how much, and who gives way to whom."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from j10ce.agent.ring.ring import Report
from j10ce.control.network.divide import TrafficClaim, divide
from j10ce.control.network.levels import COMMON
from j10ce.control.network.shaping import WAYS, Way
from j10ce.control.network.traffic import door, doors
from j10ce.model.knob import Setting, TargetId, link
from j10ce.model.machine.link import OPEN, Link
from j10ce.model.plan import Refused, ValueChange
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.policy.effect.support import missing
from j10ce.policy.equipment import described, listed

RECENT_S: Final = 5.0
KNOWN_S: Final = 60.0  # how old the last word about connections may be
# How each is called of a workload, and its series.
FARES: Final = {"drops": "net.egress.drops", "backlog": "net.egress.backlog"}
FARES_OF_TCP: Final = {"retransmits": "net.retransmits", "rtt": "net.rtt"}
NAMED: Final = 5  # how many others a sentence names
THROUGH: Final = (("sends", "ingress"), ("receives", "egress"))  # what it does, and which way of its door that is
SENDS: Final = {"egress": "sends", "ingress": "receives"}


class LinkMember(Struct, frozen=True):
    """One workload on one direction of a link; bits per second."""

    target: TargetId
    floor: float
    ceiling: float
    level: int
    measured: float | None  # None: not known
    certain: float  # what it gets if everyone sends all it can
    drops: float | None = None  # packets a second


class DividedLink(Struct, frozen=True):
    """One direction of a managed link."""

    link: Link
    way: Way
    rate: float  # infinite: nothing divides it
    measured: float | None
    members: tuple[LinkMember, ...] = ()


def divided(report: Report) -> list[DividedLink]:
    """Every managed link, each direction; members only where it is divided."""
    snap = report.snap
    managed = sorted((k for k in snap.node.links.values() if k.managed), key=lambda k: k.name)
    return [_divided(snap, on, way) for on in managed for way in WAYS]


def _divided(snap: Snapshot, on: Link, way: Way) -> DividedLink:
    rate = _number(snap, Setting(link(on.name), f"link.{way}.rate"), math.inf)
    measured = snap.readings.window(link(on.name), f"net.{way}.rate", RECENT_S).mean()
    return DividedLink(on, way, rate, measured, tuple(_members(snap, on, way, rate)) if rate < math.inf else ())


def _members(snap: Snapshot, on: Link, way: Way, rate: float) -> Iterator[LinkMember]:
    """The last claim stands for everything that is not ours."""
    targets = [t for t, e in snap.entitlements.items() if e.chosen and t in snap.workloads]
    claims = [_claim(snap, t, on, way) for t in targets]
    shares = divide(rate, [*claims, TrafficClaim(level=COMMON)])
    for target, claim, certain in zip(targets, claims, shares, strict=False):
        measured, drops = (
            snap.readings.window(target, f"net.{way}.{what}", RECENT_S).mean() for what in ("rate", "drops")
        )
        yield LinkMember(target, claim.floor, claim.ceiling, claim.level, measured, certain, drops)


def _claim(snap: Snapshot, target: TargetId, on: Link, way: Way) -> TrafficClaim:
    def has(what: str, otherwise: float) -> float:
        return _number(snap, Setting(target, f"net.{way}.{what}", on.name), otherwise)

    return TrafficClaim(math.inf, has("floor", 0.0), has("ceil", math.inf), int(has("priority", float(COMMON))))


def _number(snap: Snapshot, s: Setting, otherwise: float) -> float:
    value = snap.settings.get(s)
    return float(value) if isinstance(value, float | int) else otherwise


def fares(snap: Snapshot, target: TargetId) -> dict[str, float]:
    """How its traffic gets on, as far as that is measured: packets and segments a second, bytes, seconds."""
    recent = {name: snap.readings.window(target, metric, RECENT_S).mean() for name, metric in FARES.items()}
    known = {name: snap.readings.window(target, metric, KNOWN_S).last() for name, metric in FARES_OF_TCP.items()}
    return {name: value for name, value in (recent | known).items() if value is not None}


def links(report: Report) -> list[dict[str, Any]]:
    """Every link of the machine, as `doctor network` shows it."""
    rates: dict[str, list[str]] = {}
    for one in divided(report):
        if one.rate < math.inf:
            at = "for ceilings alone" if one.rate >= OPEN else f"at {_bits(one.rate)}"
            rates.setdefault(one.link.name, []).append(f"{one.way} {at}")
    return listed(report.snap.node.links.values(), {name: ", ".join(ways) for name, ways in rates.items()})


# ---------------------------------------------------------------------- in words


def explanation(report: Report, target: TargetId) -> dict[str, Any]:
    """`explain NAME network`: each link and direction, what it has there, and between whom it stands."""
    links = divided(report)
    lines = [line for one in links for line in _told_of(one, target)] or _silent(report)
    lines += _told_of_connections(fares(report.snap, target))
    lines += [*_behind(report.snap, target), *(f"  {why}" for why in _refused(report, target))]
    plain = [_plain(one, target) for one in links]
    text = "\n".join([f"{target}: {_entitled(report, target)}", *lines])
    traffic = fares(report.snap, target)
    return {"target": target, "knob": "network", "links": plain, "traffic": traffic, "text": text}


def _behind(snap: Snapshot, target: TargetId) -> Iterator[str]:
    """How a network of its own reaches this machine, and what that lets through to whomever it talks to."""
    whose = snap.workloads.get(target)
    if whose is None or not whose.own_network:
        return
    if not (name := door(whose, doors(snap))):
        known = ", ".join(whose.addresses) or "none known yet"
        yield f"it has a network of its own (addresses: {known}), and no link of this machine is seen to lead there"
        return
    rates = ((does, _number(snap, Setting(link(name), f"link.{way}.rate"), math.inf)) for does, way in THROUGH)
    limits = [f"{does} at most {_bits(rate)}" for does, rate in rates if rate < math.inf]
    yield f"its door is {name}: " + (
        " and ".join(limits) + ", whomever it talks to" if limits else "nothing is limited there"
    )


def _entitled(report: Report, target: TargetId) -> str:
    e = report.snap.entitlements.get(target)
    if e is None or not e.chosen:
        return "nothing is said of its traffic: no profile and no policy is for it"
    parts = [
        f"{way} {_span(said.floor, said.ceiling)}"
        for way, said in (("egress", e.egress), ("ingress", e.ingress))
        if said.floor or said.ceiling < math.inf
    ]
    by = next((f", by {s.object}" for s in e.sources if s.field == "floor.network"), "")
    said_class = f", class {e.network.class_}" if e.network.class_ else ""
    return f"tier {e.tier.value}{said_class}; {', '.join(parts) or 'no floor and no ceiling'}{by}"


def _span(floor: float, ceiling: float) -> str:
    named = [f"at least {_bits(floor)}"] if floor else []
    return " and ".join([*named, *([f"at most {_bits(ceiling)}"] if ceiling < math.inf else [])]) or "unlimited"


def _told_of(on: DividedLink, target: TargetId) -> Iterator[str]:
    used = f"{_bits(on.measured)} in use" if on.measured is not None else "use not known yet"
    if on.rate == math.inf:
        yield f"{on.link.name} {on.way}: not divided ({described(on.link)}; {used})"
        return
    at = "for ceilings alone" if on.rate >= OPEN else f"for at {_bits(on.rate)}"
    yield f"{on.link.name} {on.way}: queued {at} ({described(on.link)}; {used})"
    mine = next((m for m in on.members if m.target == target), None)
    if mine is None:
        return
    now = f"{SENDS[on.way]} {_bits(mine.measured)} now" if mine.measured is not None else "its traffic is not counted"
    drops = f", {mine.drops:.0f} packets/s dropped" if mine.drops else ""
    yield f"  {_span(mine.floor, mine.ceiling)}, level {mine.level} of 0 to 7; {now}{drops}"
    if on.rate < OPEN:
        yield f"  {_bits(mine.certain)} for certain if everyone {SENDS[on.way]} all it can"
    others = [m for m in on.members if m.target != target]
    before, after = ([m for m in others if m.level < mine.level], [m for m in others if m.level > mine.level])
    yield from ([f"  served before it: {_names(before)}"] if before else [])
    yield from ([f"  gives way to it: {_names(after)}"] if after else [])


def _told_of_connections(known: Mapping[str, float]) -> Iterator[str]:
    if "rtt" in known:
        again = f", {known['retransmits']:.1f} segments/s sent again" if "retransmits" in known else ""
        yield f"  TCP: {known['rtt'] * 1e3:.2f} ms there and back{again}"


def _names(members: list[LinkMember]) -> str:
    """The busiest first."""
    every = sorted(members, key=lambda m: (-(m.measured or 0.0), m.target))
    named = [
        m.target.removeprefix("workload/") + (f" ({_bits(m.measured)})" if m.measured is not None else "")
        for m in every[:NAMED]
    ]
    return ", ".join(named) + (f" and {len(every) - NAMED} more" if len(every) > NAMED else "")


def _silent(report: Report) -> list[str]:
    known = ", ".join(sorted(report.snap.node.links)) or "none"
    return [f"no link of this machine is managed (links: {known}); name one in a NodeStrategy: network.links.NAME"]


def _refused(report: Report, target: TargetId) -> Iterator[str]:
    """Why what was decided is not in force."""
    e = report.snap.entitlements.get(target)
    asks = e is not None and e.chosen and (e.egress.floor or e.egress.ceiling < math.inf or e.network.class_)
    for knob in ("link.egress.rate", "net.egress.floor") if asks else ():
        if not report.snap.supports(knob):
            yield missing(report.snap, knob)
            return
    for change, result in report.outcome.refused() if report.armed else ():
        if isinstance(change, ValueChange) and isinstance(result, Refused):
            s = change.setting
            if s.knob.startswith("link.") or (s.target == target and s.knob.startswith("net.")):
                yield f"{s}: {result.reason}"


def _plain(on: DividedLink, target: TargetId) -> dict[str, Any]:
    mine = next((m for m in on.members if m.target == target), None)
    named = {"link": on.link.name, "direction": on.way, "rate": _finite(on.rate), "used": on.measured}
    if mine is None:
        return named
    own = {"floor": mine.floor, "ceiling": _finite(mine.ceiling), "level": mine.level, "drops": mine.drops}
    return named | own | {"measured": mine.measured, "certain": mine.certain}


def _finite(value: float) -> float | None:
    return value if value < math.inf else None


def _bits(rate: float) -> str:
    return spell("network", rate)
