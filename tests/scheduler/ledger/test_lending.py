"""What best effort stands on, and whether it is back in time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from j10ce.model.resource import NOTHING, Resources
from j10ce.scheduler.ledger.lending import LendingOffer, Loans, lent
from j10ce.testing.build import resources

AMOUNTS = st.builds(resources, st.integers(0, 9), st.integers(0, 9).map(lambda n: f"{n}Gi"))
OFFERS = st.lists(
    st.builds(
        LendingOffer, st.sampled_from("abc"), AMOUNTS.filter(any), st.integers(0, 4), st.integers(0, 3), st.just(30.0)
    ),
    max_size=3,
    unique_by=lambda o: o.source,
)


def offer(source: str = "db", *, units: int, used: int = 0) -> LendingOffer:
    return LendingOffer(source, resources("1", "4Gi"), units, used, 30.0)


@given(AMOUNTS, AMOUNTS, OFFERS)
def test_no_more_is_lent_than_is_offered_nor_than_is_used(
    free: Resources, use: Resources, offers: list[LendingOffer]
) -> None:
    amounts = lent(free, use, offers)
    assert all(0 < units <= next(o.units for o in offers if o.source == source) for source, units in amounts.items())
    if use.fits(free):
        assert not amounts, "what nobody holds is used first"


def test_the_units_of_whoever_came_last_are_lent_first() -> None:
    offers = [offer("old", units=2), offer("young", units=1)]
    assert lent(NOTHING, resources(0, "4Gi"), offers) == {"young": 1}
    assert lent(NOTHING, resources(0, "5Gi"), offers) == {"young": 1, "old": 1}


def test_a_unit_that_nobody_borrowed_is_not_called_back() -> None:
    loans = Loans()
    loans.observe("n", resources(0, "8Gi"), resources(0, "8Gi"), [offer(units=2)], 0.0)
    loans.observe("n", resources(0, "8Gi"), resources(0, "20Gi"), [offer(units=1, used=1)], 10.0)
    assert loans.reclaims("db") == []


def test_the_deadline_runs_from_when_the_holder_came() -> None:
    loans = Loans()
    loans.observe("n", NOTHING, resources(0, "8Gi"), [offer(units=2)], 0.0)
    assert loans.units() == {"db": 2}
    for wall in (10.0, 20.0):
        loans.observe("n", resources(0, "1Gi"), resources(0, "7Gi"), [offer(units=1, used=1)], wall)
    (reclaim,) = loans.reclaims("db")
    assert (reclaim.units, reclaim.deadline, reclaim.excess) == (1, 40.0, 2 << 30)
    loans.observe("n", NOTHING, resources(0, "4Gi"), [offer(units=1, used=1)], 30.0)
    assert loans.reclaims("db") == []
    assert loans.units() == {"db": 1}


def test_nothing_is_called_back_from_a_node_that_is_gone() -> None:
    loans = Loans()
    loans.observe("n", NOTHING, resources(0, "8Gi"), [offer(units=2)], 0.0)
    loans.observe("n", NOTHING, resources(0, "8Gi"), [offer(units=1, used=1)], 10.0)
    assert loans.reclaims("db")
    loans.forget("n")
    assert (loans.reclaims("db"), loans.units(), set(loans.nodes())) == ([], {}, set())


def test_cpu_comes_back_by_itself() -> None:
    loans = Loans()
    loans.observe("n", NOTHING, resources("2"), [offer(units=2)], 0.0)
    loans.observe("n", NOTHING, resources("2"), [offer(units=1, used=1)], 10.0)
    assert loans.reclaims("db") == []
