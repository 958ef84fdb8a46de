"""The wishes for one setting become one value.

The `want` of the highest rank, clamped by the highest `at_least` and the lowest `at_most`, first those of advice, then
those of all other ranks; `at_least` wins over `at_most`. Sets intersect from the highest rank down, within the one that
an adopted cgroup came with; advice widens none beyond what the other ranks leave. Last come the knob's range and the
workload's floor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from j10ce.model.knob import KNOBS, PERIOD_US, KnobRole, Setting, Unit, Value, format_cpus, has, render
from j10ce.model.plan import Bound, Proposal, Rank, Verdict
from j10ce.model.resource import NOTHING, RESOURCES, Resources, spell
from j10ce.model.snapshot import NodeFacts

WANT, AT_LEAST, AT_MOST = Bound.WANT, Bound.AT_LEAST, Bound.AT_MOST  # module names are found faster than members
ADVICE = Rank.ADVICE
GUARANTEE, CAP = KnobRole.GUARANTEE, KnobRole.CAP
TYPES: Final = {Unit.SET: frozenset, Unit.TEXT: str}  # of values that are no numbers
FORMS: Final = {k.name: TYPES[k.unit] for k in KNOBS.values() if k.unit in TYPES}  # by knob: names are hashed faster
LAPSED: Final = "journal"  # owner of the wish to go back to the original value; nobody else speaks by that name
FREEZE: Final = "cgroup.freeze"
# Caps that may not cut into a floor, and the resource that it is of.
FLOORED: Final = {
    "cpu.max": "cpu", "memory.high": "memory", "memory.max": "memory",
    "net.egress.ceil": "network", "net.ingress.ceil": "network",
    "io.max.rbps": "diskRead", "io.max.wbps": "diskWrite",
}  # fmt: skip


def merge(s: Setting, wishes: Sequence[Proposal], base: Value, floor: Resources, node: NodeFacts) -> Verdict:
    """`base` stands where nobody wants a value: bounds move it. The order of the wishes does not matter."""
    ranked = sorted(wishes, key=precedence) if len(wishes) > 1 else wishes
    if s.knob == "cpuset.cpus":
        return _place(s, ranked, base, floor, node)
    if isinstance(ranked[0].value, frozenset):
        return _narrow(s, ranked)
    if isinstance(ranked[0].value, str):
        return Verdict(s, ranked[0].value, ranked[0], tuple(ranked[1:]), by=ranked[0])
    return _bounded(s, ranked, base, floor, node)


def precedence(p: Proposal) -> tuple[int, str, str, str, str, float | str]:
    """A total order, highest rank first; owners break ties, the rest only makes it total."""
    value = format_cpus(p.value) if isinstance(p.value, frozenset) else p.value
    return -p.rank, p.owner, p.bound.value, p.reason, type(p.value).__name__, value


def well_formed(p: Proposal) -> bool:
    """Whether it is a setting that its target can have, and the value of its knob's type at all."""
    s, value = p.setting, p.value
    k = KNOBS.get(s.knob)
    if p.owner == LAPSED:
        return False
    if k is None:
        return value == value
    if bool(s.instance) is not k.several or not has(s.target, s.knob):
        return False
    if type(value) is float:
        return value == value and s.knob not in FORMS
    return isinstance(value, FORMS.get(s.knob, int))


def _bounded(s: Setting, ranked: Sequence[Proposal], base: Value, floor: Resources, node: NodeFacts) -> Verdict:
    winner = next((p for p in ranked if p.bound is WANT), None)
    by, value = winner, number(winner.value if winner else base)
    moved: list[Proposal] = []
    for advised in (True, False):
        for bound in _tightest([p for p in ranked if (p.rank is ADVICE) is advised]):
            if _passed(value, bound):
                by, value = bound, number(bound.value)
                moved.append(bound)
    movers = tuple(moved) if winner else ()  # without a want the bound is the wish
    clamps = tuple([_bound_text(s, p) for p in movers])
    allowed, texts = _allow(s, value, floor, node)
    others = tuple([p for p in ranked if p != winner]) if len(ranked) > 1 or winner is None else ()
    return Verdict(s, allowed, winner, others, clamps + texts, "", by if allowed == value else None, movers)


def _tightest(ranked: Sequence[Proposal]) -> Iterator[Proposal]:
    """The lowest `at_most`, then the highest `at_least`; of equal ones the first."""
    yield from sorted((p for p in ranked if p.bound is AT_MOST), key=lambda p: number(p.value))[:1]
    yield from sorted((p for p in ranked if p.bound is AT_LEAST), key=lambda p: -number(p.value))[:1]


def _passed(value: float, bound: Proposal) -> bool:
    limit = number(bound.value)
    return value > limit if bound.bound is AT_MOST else value < limit


def _bound_text(s: Setting, p: Proposal) -> str:
    moved = "lowered" if p.bound is AT_MOST else "raised"
    return f"{moved} to {render(s.knob, p.value)} by {p.owner}: {p.reason}"


def _allow(s: Setting, value: float, floor: Resources, node: NodeFacts) -> tuple[float, tuple[str, ...]]:
    k = KNOBS.get(s.knob)
    if k is None:
        return value, ()
    texts: tuple[str, ...] = ()
    promises_memory = k.role is GUARANTEE and k.unit is Unit.BYTES  # nobody can be promised more than there is
    most = float(node.memory) if promises_memory else k.high
    if not k.low <= value <= most:
        value = min(max(value, k.low), most)
        texts = (f"moved to {render(s.knob, value)}: the range is {k.low:g} to {most:g}",)
    if s.knob == FREEZE and value and floor.cpu:
        return 0.0, (*texts, f"not frozen: CPU time of {spell('cpu', floor.cpu)} is promised inside")
    least = least_cap(s.knob, floor, node) if k.role is CAP and floor is not NOTHING else 0.0
    if value < least:
        return least, (*texts, f"raised to {render(s.knob, least)}: {_floor_text(s.knob, floor)}")
    return value, texts


def least_cap(knob: str, floor: Resources, node: NodeFacts) -> float:
    """The smallest cap that leaves a floor whole; 0 for knobs that cap nothing."""
    match FLOORED.get(knob):
        case None:
            return 0.0
        case "cpu":
            return float(floor.cpu * PERIOD_US // 1000)
        case "memory":
            return float(math.ceil(floor.memory / node.page) * node.page)  # the kernel rounds down to pages
        case resource:
            return float(floor[RESOURCES.index(resource)])


def _floor_text(knob: str, floor: Resources) -> str:
    return f"a cap never cuts the floor of {promised(knob, floor)}"


def promised(knob: str, floor: Resources) -> str:
    """The resource that a capping knob is about, and how much of it a floor has."""
    kind = FLOORED.get(knob, "memory")
    return f"{kind} {spell(kind, floor[RESOURCES.index(kind)])}"


def _place(s: Setting, ranked: Sequence[Proposal], base: Value, floor: Resources, node: NodeFacts) -> Verdict:
    """From the highest rank down; a set that would leave too few CPUs is left out. Empty: as the parent."""
    within = [p for p in ranked if p.bound is not AT_LEAST]
    fewest = max(1, math.ceil(floor.cpu / 1000))
    by: Proposal | None = None
    value = cpus(base) & node.cpus  # what an adopted cgroup came with is narrowed, never widened
    clamps: list[str] = []
    movers: list[Proposal] = []
    firm = value  # of the ranks above advice
    for p in within:
        narrowed = (value or node.cpus) & (cpus(p.value) or node.cpus)
        if len(narrowed) < fewest and cpus(p.value):
            clamps.append(_left_out(s, p, len(narrowed), fewest, floor))
        elif cpus(p.value):
            by = p if narrowed != value else by
            value = narrowed
            firm = value if p.rank is not ADVICE else firm
    for p in ranked:
        more = cpus(p.value) & ((firm or node.cpus) if p.rank is ADVICE else node.cpus)
        if p.bound is AT_LEAST and value and not more <= value:
            value, by = value | more, p
            clamps.append(f"widened to {render(s.knob, value)} by {p.owner}: {p.reason}")
            movers.append(p)
    winner = within[0] if within else None
    others = tuple(p for p in ranked if p != winner)
    return Verdict(s, value, winner, others, tuple(clamps), by=by or winner, moved_by=tuple(movers))


def _narrow(s: Setting, ranked: Sequence[Proposal]) -> Verdict:
    """A set that is no set of CPUs: what the highest rank wants, within every `at_most` that leaves some of it."""
    winner = next((p for p in ranked if p.bound is WANT), ranked[0])
    by, value, movers = winner, cpus(winner.value), list[Proposal]()
    for p in ranked:
        if p.bound is AT_MOST and (left := value & cpus(p.value)) and left != value:
            by, value = p, left
            movers.append(p)
    clamps, others = tuple(_bound_text(s, p) for p in movers), tuple(p for p in ranked if p != winner)
    return Verdict(s, value, winner, others, clamps, by=by, moved_by=tuple(movers))


def _left_out(s: Setting, p: Proposal, left: int, fewest: int, floor: Resources) -> str:
    need = f"the floor of cpu {spell('cpu', floor.cpu)} needs {fewest}" if fewest > 1 else "one is the least"
    return f"{render(s.knob, p.value)} of {p.owner} left out: {left} CPUs would remain, {need}"


def number(value: Value) -> float:
    """Of a knob that holds numbers; `well_formed` let nothing else in."""
    if type(value) is float:
        return value
    return float(value) if isinstance(value, int) else math.nan


def cpus(value: Value) -> frozenset[int]:
    return value if isinstance(value, frozenset) else frozenset()
