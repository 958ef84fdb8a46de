"""The book of reservations: exact, never oversold, and it says why not."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from j10ce.model.kinds import Tier
from j10ce.model.resource import NOTHING, Resources
from j10ce.policy.entitlement.ledger import Headroom, Ledger, Line, guaranteeable
from j10ce.testing.build import resources


def line(holder: str, cpu: str = "0", memory: str = "0", tier: str = "standard") -> Line:
    return Line(holder, resources(cpu, memory), Tier(tier))


@pytest.mark.parametrize(
    ("cpu", "memory", "left"),
    [
        pytest.param("1", "4Gi", resources("900m", "3584Mi"), id="amounts on a small machine"),
        pytest.param(
            "64", "256Gi", resources("60800m", str((256 << 30) * 95 // 100)), id="five percent on a large one"
        ),
        pytest.param("50m", "256Mi", NOTHING, id="nothing on a tiny one"),
    ],
)
def test_a_part_of_the_machine_is_never_promised(cpu: str, memory: str, left: Resources) -> None:
    assert guaranteeable(resources(cpu, memory)) == left


def test_the_headroom_is_configurable() -> None:
    none = Headroom(percent=0, cpu=resources().cpu, memory=resources().memory)
    assert guaranteeable(resources("4", "8Gi"), none) == resources("4", "8Gi")


def test_the_last_byte_can_be_promised_and_not_one_more() -> None:
    ledger = Ledger(resources("2", "1Gi"))
    assert ledger.reserve(line("a", "1", "1Gi")) is None
    assert ledger.reserve(line("b", "1")) is None
    assert ledger.free == NOTHING
    assert ledger.reserve(line("c", memory="1")) is not None
    assert ledger.get("c") is None


def test_a_refusal_tells_what_is_missing_and_who_holds_it() -> None:
    ledger = Ledger(resources("4", "8Gi"), [line("db", "3", "1Gi"), line("web", "500m", "6Gi"), line("tiny", "1m")])
    refusal = ledger.reserve(line("new", "1", "1Gi"))
    assert str(refusal) == "cpu 1 wanted, 499m free of 4; held by db cpu 3, web cpu 500m, tiny cpu 1m"


def test_a_resize_asks_only_for_the_difference() -> None:
    ledger = Ledger(resources("2"))
    assert ledger.reserve(line("a", "1500m")) is None
    assert ledger.reserve(line("a", "2")) is None
    refusal = ledger.reserve(line("a", "2500m"))
    assert refusal is not None
    assert refusal.wanted == resources("500m")
    assert ledger.granted("a") == resources("2")
    assert ledger.reserve(line("a", "100m")) is None
    assert ledger.free == resources("1900m")


def test_an_exchange_is_all_or_nothing() -> None:
    ledger = Ledger(resources("2"), [line("a", "2")])
    assert ledger.exchange(line("a", "1"), line("b", "2")) is not None
    assert ledger.granted("a") == resources("2")
    assert ledger.exchange(line("a", "1"), line("b", "1")) is None
    assert ledger.granted("b") == resources("1")


def test_release_is_idempotent() -> None:
    ledger = Ledger(resources("2"), [line("a", "1")])
    assert ledger.release("a") == line("a", "1")
    assert ledger.release("a") is None
    assert ledger.free == resources("2")


def test_a_shrunken_machine_cuts_from_the_bottom_and_in_proportion() -> None:
    lines = [line("top", "1", tier="reserved"), line("x", "1"), line("y", "3"), line("job", "1", tier="besteffort")]
    ledger = Ledger(resources("6"), lines)
    assert ledger.cut("x") == ""
    ledger = Ledger(resources("3"), ledger)
    grants = {held.holder: ledger.granted(held.holder).cpu for held in ledger}
    assert grants == {"top": 1000, "x": 500, "y": 1500, "job": 0}
    assert ledger.cut("top") == ""
    assert ledger.cut("x") == (
        "the machine is too small for its promises; tier standard: cpu 1 cut to 500m, 6 are promised and 3 there"
    )
    ledger = Ledger(resources("6"), ledger)
    assert ledger.granted("y") == resources("3")


def test_on_a_shrunken_machine_less_can_still_be_asked_for() -> None:
    ledger = Ledger(resources("1"), [line("a", "2"), line("b", "1")])
    assert ledger.reserve(line("a", "1500m")) is None
    assert ledger.reserve(line("a", "1600m")) is not None
    assert ledger.promised == resources("2500m")


amounts = st.builds(Resources, *[st.integers(0, 40)] * 5)
holders = st.sampled_from("abcde")


class LedgerMachine(RuleBasedStateMachine):
    """Any sequence of operations against a plain model: a dict of promises."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(Resources(*[100] * 5))
        self.model: dict[str, Line] = {}
        self.shrunk = False

    @rule(holder=holders, amount=amounts, tier=st.sampled_from(Tier))
    def reserve(self, holder: str, amount: Resources, tier: Tier) -> None:
        asked = Line(holder, amount, tier)
        room = self.ledger.capacity
        for other in self.model.values():
            room = Resources._make(
                r - a for r, a in zip(room, (other.amount if other.holder != holder else NOTHING), strict=True)
            )
        had = self.model[holder].amount if holder in self.model else NOTHING
        fits = all(a <= h or a <= r for a, h, r in zip(amount, had, room, strict=True))
        assert (self.ledger.reserve(asked) is None) == fits
        if fits:
            self.keep(asked)

    @rule(first=amounts, second=amounts)
    def exchange(self, first: Resources, second: Resources) -> None:
        lines = Line("a", first, Tier.STANDARD), Line("b", second, Tier.BESTEFFORT)
        if self.ledger.exchange(*lines) is None:
            for asked in lines:
                self.keep(asked)

    def keep(self, asked: Line) -> None:
        self.model.pop(asked.holder, None)
        if any(asked.amount):
            self.model[asked.holder] = asked

    @rule(holder=holders)
    def release(self, holder: str) -> None:
        assert self.ledger.release(holder) == self.model.pop(holder, None)
        assert self.ledger.release(holder) is None

    @rule(capacity=amounts)
    def shrink(self, capacity: Resources) -> None:
        self.shrunk = True
        self.ledger = Ledger(capacity, self.ledger)

    @rule()
    @precondition(lambda self: self.shrunk)
    def grow(self) -> None:
        self.ledger = Ledger(Resources(*[1000] * 5), self.ledger)
        assert all(self.ledger.granted(h) == held.amount for h, held in self.model.items())

    @invariant()
    def never_oversold(self) -> None:
        total = NOTHING
        for holder in self.model:
            total = total.plus(self.ledger.granted(holder))
            assert self.ledger.granted(holder).fits(self.model[holder].amount)
        assert total.fits(self.ledger.capacity)
        if not self.shrunk:
            assert self.ledger.promised.fits(self.ledger.capacity)

    @invariant()
    def every_promise_is_in_the_book(self) -> None:
        assert {held.holder: held for held in self.ledger} == self.model
        assert len(self.ledger) == len(self.model)
        total = NOTHING
        for held in self.model.values():
            total = total.plus(held.amount)
        assert self.ledger.promised == total

    @invariant()
    def a_better_tier_is_cut_only_when_nothing_is_left_below(self) -> None:
        for n in range(5):
            cut = [h.tier.rank for h in self.model.values() if self.ledger.granted(h.holder)[n] < h.amount[n]]
            for held in self.model.values():
                if cut and held.tier.rank < max(cut):
                    assert self.ledger.granted(held.holder)[n] == 0


TestLedgerUnderAnySequence = LedgerMachine.TestCase
