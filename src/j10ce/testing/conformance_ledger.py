"""What every ledger must do, whether it keeps one node or a fleet. A ledger's test class gives an empty one of a size.

class TestMine(LedgerConformance):
    def make(self, capacity: Resources) -> Book: ...
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from j10ce.model.resource import NOTHING, Resources
from j10ce.testing.build import resources

WHOLE = resources("4", "8Gi")


class Book(ABC):
    """A ledger of one node, as the suite sees it: promises by holder."""

    @abstractmethod
    def reserve(self, holder: str, amount: Resources) -> object | None:
        """In place of what the holder has; None when done, else a refusal that prints its numbers."""

    @abstractmethod
    def release(self, holder: str) -> bool:
        """Whether there was something to free."""

    @abstractmethod
    def resize(self, capacity: Resources) -> None: ...

    @abstractmethod
    def promised(self) -> dict[str, Resources]: ...

    @abstractmethod
    def granted(self, holder: str) -> Resources:
        """What the promise is worth on the node as it is."""


def total(amounts: Iterable[Resources]) -> Resources:
    sum_ = NOTHING
    for amount in amounts:
        sum_ = sum_.plus(amount)
    return sum_


SIZES = st.integers(0, 5).map(lambda n: f"{n}")
AMOUNTS = st.builds(resources, SIZES, SIZES.map(lambda n: f"{n}Gi")).filter(any)
HOLDERS = st.sampled_from("abcd")
OPERATIONS = st.one_of(
    st.tuples(st.just("reserve"), HOLDERS, AMOUNTS),
    st.tuples(st.just("release"), HOLDERS),
    st.tuples(st.just("resize"), AMOUNTS),
)


class LedgerConformance:
    def make(self, capacity: Resources) -> Book:
        raise NotImplementedError

    def test_the_last_of_it_can_be_promised_and_not_one_more(self) -> None:
        book = self.make(WHOLE)
        assert book.reserve("a", resources("1", "8Gi")) is None
        assert book.reserve("b", resources("3")) is None
        assert book.reserve("c", resources("1m")) is not None
        assert book.reserve("d", resources(0, "1")) is not None
        assert book.promised() == {"a": resources("1", "8Gi"), "b": resources("3")}

    def test_a_refusal_tells_what_is_wanted_and_what_is_free(self) -> None:
        book = self.make(WHOLE)
        book.reserve("db", resources("3", "1Gi"))
        refusal = str(book.reserve("web", resources("2", "1Gi")))
        assert "cpu 2 wanted, 1 free of 4" in refusal
        assert "db cpu 3" in refusal
        assert "memory 1Gi wanted, 7Gi free" not in refusal, "of that there is enough"

    def test_a_refusal_changes_nothing(self) -> None:
        book = self.make(WHOLE)
        book.reserve("a", resources("2"))
        before = book.promised()
        assert book.reserve("a", resources("5")) is not None
        assert book.reserve("b", resources("3")) is not None
        assert (book.promised(), book.granted("a"), book.granted("b")) == (before, resources("2"), NOTHING)

    def test_growth_asks_only_for_the_difference(self) -> None:
        book = self.make(WHOLE)
        assert book.reserve("a", resources("3")) is None
        assert book.reserve("a", resources("4")) is None
        assert book.granted("a") == resources("4")

    def test_asking_for_less_or_the_same_always_succeeds(self) -> None:
        book = self.make(WHOLE)
        book.reserve("a", resources("4", "8Gi"))
        book.resize(resources("2", "4Gi"))
        assert book.reserve("a", resources("4", "8Gi")) is None
        assert book.reserve("a", resources("3", "8Gi")) is None
        assert book.reserve("a", resources("2", "4Gi")) is None
        assert book.granted("a") == resources("2", "4Gi")

    def test_release_is_idempotent(self) -> None:
        book = self.make(WHOLE)
        book.reserve("a", resources("4"))
        assert book.release("a")
        assert not book.release("a")
        assert book.reserve("b", resources("4")) is None

    def test_a_machine_that_shrinks_keeps_its_promises_and_grants_what_it_has(self) -> None:
        book = self.make(WHOLE)
        book.reserve("a", resources("2"))
        book.reserve("b", resources("2"))
        book.resize(resources("3"))
        assert book.promised().keys() == {"a", "b"}
        assert total(map(book.granted, "ab")).fits(resources("3"))
        assert book.reserve("c", resources("1m")) is not None, "nothing is promised on top"
        book.resize(WHOLE)
        assert [book.granted(holder) for holder in "ab"] == [resources("2"), resources("2")]

    def test_no_sequence_oversells(self) -> None:
        @settings(max_examples=40, deadline=None)
        @given(st.lists(OPERATIONS, max_size=25))
        def sequence(operations: list[tuple[Any, ...]]) -> None:
            book, capacity = self.make(WHOLE), WHOLE
            for name, *arguments in operations:
                before = book.promised()
                done = getattr(book, name)(*arguments)
                if name == "resize":
                    (capacity,) = arguments
                    assert book.promised() == before
                if name == "reserve" and done is not None:
                    assert book.promised() == before
                    assert any(letter.isdigit() for letter in str(done))
                check(book, capacity)

        sequence()


def check(book: Book, capacity: Resources) -> None:
    """Nothing is granted twice, and what fits is granted whole."""
    promised = book.promised()
    grants = {holder: book.granted(holder) for holder in promised}
    assert total(grants.values()).fits(capacity)
    assert all(granted.fits(promised[holder]) for holder, granted in grants.items())
    if total(promised.values()).fits(capacity):
        assert grants == promised
