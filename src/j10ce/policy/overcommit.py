"""How much of a node may be lent to reclaimable workloads, and every term of it.

    batch = capacity − margin − max(system, headroom) − protected − withheld, within 0 and a cap
    mid   = promised − peak·(1 + safety), within 0, the room beside the peak, and the unused capacity;
            plus a share of what nobody was promised, within a cap; or a fixed share of the capacity

`batch` follows what the protected use; `mid` follows what they are predicted to use at most, so it moves slowly.
Amounts are millicores and bytes. A result is kept as the steps that lead to it: taken in order from zero they give it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from j10ce.model.kinds import OvercommitTerm, Strict
from j10ce.model.parts.strategy import LawSection, OvercommitSection
from j10ce.model.quantity import Duration, Quantity

Percent = Annotated[int, Meta(ge=0, le=1000)]
Share = Annotated[int, Meta(ge=0, le=100)]
By = Literal["usage", "request", "maxUsageRequest"]
Step = Literal["plus", "minus", "at most", "at least"]


class Law(Strict, frozen=True, kw_only=True):
    """Of one resource."""

    threshold_percent: Percent = 65  # of the capacity, for everyone together; above 100 sells more than there is
    by: By = "usage"
    batch_percent: Percent | UnsetType = UNSET  # of the capacity, at most; no cap when not said
    mid_percent: Share = 100  # of the capacity, at most
    mid_unallocated_percent: Share = 0  # of what nobody was promised
    mid_static_percent: Share | UnsetType = UNSET  # of the capacity, whatever is used or predicted
    safety_percent: Share = 10  # on top of the predicted peak
    reserved: Quantity = Quantity(0)  # for the machine itself, where that is more than the headroom


class OvercommitStrategy(Strict, frozen=True, kw_only=True):
    cpu: Law = Law(threshold_percent=60)
    memory: Law = Law()
    degrade: Duration = Duration(900)  # a node that is silent for longer lends nothing
    refresh: Duration = Duration(300)  # how old a published amount may be while it is not exact
    difference: Annotated[float, Meta(gt=0, le=1)] = 0.1  # a smaller change is not worth telling


DEFAULT: Final = OvercommitStrategy()


def adjusted(strategy: OvercommitStrategy, section: OvercommitSection) -> OvercommitStrategy:
    """With the fields that a node's strategies say in place of those that were there."""
    own = {name: value for name, value in _said(section).items() if name not in ("cpu", "memory")}
    cpu, memory = replace(strategy.cpu, **_said(section.cpu)), replace(strategy.memory, **_said(section.memory))
    return replace(strategy, cpu=cpu, memory=memory, **own)


def _said(section: OvercommitSection | LawSection) -> dict[str, Any]:
    values = ((name, getattr(section, name)) for name in section.__struct_fields__)
    return {name: value for name, value in values if value is not UNSET}


class Inputs(NamedTuple):
    """What is known of one resource of one node. None: not known."""

    capacity: int
    headroom: int = 0  # never promised: the machine itself has to run
    node_usage: int | None = None  # of everyone, high percentile
    system: int = 0  # used outside of all workloads
    usage: int = 0  # of the protected workloads
    request: int = 0  # their requests or floors, whichever is larger
    larger: int = 0  # the sum, workload by workload, of the larger of use and request
    peak: int | None = None  # of everything but best effort, predicted
    withheld: int = 0  # units that nobody uses and that may not be lent
    spare: int | None = None  # what the protected leave of their requests at their peaks, each by itself
    worth: float = 1.0  # of one CPU here, in CPUs of the slowest of the fleet


class ZoneTerms(NamedTuple):
    """One resource of one memory node: what there is, and what of the protected runs there alone."""

    capacity: int
    usage: int = 0
    request: int = 0
    larger: int = 0


class Term(NamedTuple):
    step: Step
    name: str
    amount: int
    why: str = ""


def total(terms: Iterable[Term]) -> int:
    """The steps, taken in order from zero."""
    sum_ = 0
    for term in terms:
        match term.step:
            case "plus":
                sum_ += term.amount
            case "minus":
                sum_ -= term.amount
            case "at most":
                sum_ = min(sum_, term.amount)
            case "at least":
                sum_ = max(sum_, term.amount)
    return sum_


def batch(law: Law, i: Inputs) -> tuple[Term, ...]:
    margin = i.capacity - i.capacity * law.threshold_percent // 100
    terms = [Term("plus", "capacity", i.capacity)]
    if margin >= 0:
        terms.append(Term("minus", "margin", margin, f"everyone together stays within {law.threshold_percent} %"))
    else:
        terms.append(Term("plus", "oversold", -margin, f"the threshold is {law.threshold_percent} %"))
    terms += [_machine(law, i), _protected(law, i)]
    if i.withheld:
        terms.append(Term("minus", "withheld", i.withheld, "units that nobody uses and that are not lent"))
    terms.append(Term("at least", "nothing", 0))
    if law.batch_percent is not UNSET:
        cap = i.capacity * law.batch_percent // 100
        terms.append(Term("at most", "cap", cap, f"{law.batch_percent} % of the capacity"))
    if i.worth > 1:
        more = round(total(terms) * (i.worth - 1))
        terms.append(Term("plus", "normalized", more, f"a CPU here is worth {i.worth:g} of the slowest"))
    return tuple(terms)


def mid(law: Law, i: Inputs) -> tuple[Term, ...]:
    cap = Term("at most", "cap", i.capacity * law.mid_percent // 100, f"{law.mid_percent} % of the capacity")
    if law.mid_static_percent is not UNSET:
        share = i.capacity * law.mid_static_percent // 100
        return Term("plus", "static", share, f"{law.mid_static_percent} % of the capacity, whatever is used"), cap
    if i.peak is None:
        return (Term("at least", "nothing", 0, "there is no prediction yet"),)
    expected = i.peak + i.peak * law.safety_percent // 100
    unused = max(0, i.capacity - i.node_usage) if i.node_usage is not None else 0
    terms = [
        Term("plus", "promised", i.request, "requests and floors of the protected"),
        Term("minus", "peak", expected, f"predicted, and {law.safety_percent} % for safety"),
        *([] if i.spare is None else [Term("at most", "spare", i.spare, "what they leave at their peaks, one by one")]),
        Term("at least", "nothing", 0),
        Term("at most", "beside the peak", max(0, i.capacity - expected)),
        Term("at most", "unused", unused, "capacity less what is in use"),
    ]
    if law.mid_unallocated_percent:
        left = max(0, i.capacity - max(i.system, i.headroom) - i.request)
        share = left * law.mid_unallocated_percent // 100
        terms.append(Term("plus", "unallocated", share, f"{law.mid_unallocated_percent} % of what nobody was promised"))
    if i.withheld:
        left = max(0, i.capacity - expected - i.withheld)
        terms.append(Term("at most", "beside withheld", left, "units that nobody uses and that are not lent"))
    return (*terms, cap)


def _machine(law: Law, i: Inputs) -> Term:
    """By request the system's use does not count: its part is in the headroom."""
    if law.by != "request" and i.system > i.headroom:
        return Term("minus", "system", i.system, "used outside of all workloads, more than the headroom")
    return Term("minus", "headroom", i.headroom, "never promised: the machine itself has to run")


def _protected(law: Law, i: Inputs) -> Term:
    match law.by:
        case "usage":
            return Term("minus", "protected", i.usage, "what everyone but best effort uses, 95th percentile")
        case "request":
            return Term("minus", "protected", i.request, "requests and floors of everyone but best effort")
        case "maxUsageRequest":
            return Term("minus", "protected", i.larger, "the larger of use and request, workload by workload")


RESULTS: Final = {"batch": batch, "mid": mid}


def reclaimable(strategy: OvercommitStrategy, inputs: Mapping[str, Inputs]) -> tuple[OvercommitTerm, ...]:
    """Every term of every result; `inputs` by resource: cpu, memory."""
    laws = {"cpu": strategy.cpu, "memory": strategy.memory}
    return tuple(
        OvercommitTerm(
            result=f"{kind}-{resource}", step=t.step, name=t.name, amount=spelled(resource, t.amount), why=t.why
        )
        for kind, formula in RESULTS.items()
        for resource, law in laws.items()
        if resource in inputs
        for t in formula(law, kept_back(law, resource, inputs[resource]))
    )


def reclaimable_zones(
    strategy: OvercommitStrategy, inputs: Mapping[str, Inputs], zones: Mapping[str, Mapping[str, ZoneTerms]]
) -> dict[str, dict[str, Quantity]]:
    """Batch of each memory node. `inputs`: of the whole machine."""
    laws = {"cpu": strategy.cpu, "memory": strategy.memory}
    made: dict[str, dict[str, Quantity]] = {zone: {} for zone in zones}
    for resource, law in laws.items():
        there = {zone: bound[resource] for zone, bound in zones.items() if resource in bound}
        if resource in inputs and len(there) == len(zones):
            for zone, i in divided(kept_back(law, resource, inputs[resource]), there).items():
                made[zone][f"batch-{resource}"] = spelled(resource, total(batch(law, i)))
    return {zone: amounts for zone, amounts in made.items() if amounts}


def divided(whole: Inputs, zones: Mapping[str, ZoneTerms]) -> dict[str, Inputs]:
    """Who is bound counts where it is; everybody else, and the machine itself, in all of them alike."""
    n = max(1, len(zones))

    def share(amount: int) -> int:
        return -(-max(0, amount) // n)

    free = {
        name: share(getattr(whole, name) - sum(getattr(bound, name) for bound in zones.values()))
        for name in ("usage", "request", "larger")
    }
    alike = whole._replace(
        headroom=share(whole.headroom), system=share(whole.system), withheld=share(whole.withheld), **free
    )
    return {
        zone: alike._replace(
            capacity=bound.capacity,
            usage=alike.usage + bound.usage,
            request=alike.request + bound.request,
            larger=alike.larger + bound.larger,
        )
        for zone, bound in zones.items()
    }


def kept_back(law: Law, resource: str, i: Inputs) -> Inputs:
    """With the headroom that the law asks for, where that is more."""
    reserved = law.reserved.millicores() if resource == "cpu" else law.reserved.bytes()
    return i._replace(headroom=max(i.headroom, reserved))


def results(terms: Iterable[OvercommitTerm]) -> dict[str, Quantity]:
    """What the terms add up to, by result."""
    sums: dict[str, list[Term]] = {}
    for t in terms:
        sums.setdefault(t.result, []).append(Term(t.step, t.name, int(t.amount.amount * 1000)))
    return {name: Quantity(Fraction(total(steps), 1000)) for name, steps in sums.items()}


def spelled(resource: str, amount: int) -> Quantity:
    return Quantity(Fraction(amount, 1000) if resource == "cpu" else Fraction(amount))


def worth_telling(
    before: Mapping[str, Quantity], fresh: Mapping[str, Quantity], strategy: OvercommitStrategy, age_s: float
) -> bool:
    """A jump is written at once, a drift when the last word is old; nothing is written twice."""
    if before.keys() != fresh.keys():
        return True
    jump = any(
        abs(q.amount - before[name].amount) > before[name].amount * strategy.difference for name, q in fresh.items()
    )
    return jump or (age_s >= strategy.refresh.seconds and before != fresh)


def degraded(strategy: OvercommitStrategy, silent_s: float, names: Iterable[str]) -> tuple[OvercommitTerm, ...]:
    """Nothing is lent on the word of a node that has been silent for too long."""
    why = f"no report for {silent_s:.0f} s, more than {strategy.degrade}" if silent_s < float("inf") else "no report"
    return tuple(
        OvercommitTerm(result=name, step="at least", name="silent", amount=Quantity(0), why=why) for name in names
    )
