"""Which CPUs best effort is confined to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.cpu.suppression.confine import choose, count
from j10ce.testing import build

SOCKETS = build.topology(8, per_socket=4)  # CPUs n and n + 8 are one core; cores 0-3 and 4-7 are one memory node each
CPUS = frozenset(range(16))
sets = st.frozensets(st.integers(0, 15))


@pytest.mark.parametrize(
    ("room", "held", "whole", "want"),
    [
        pytest.param(0.2, 0, False, 1, id="one at least"),
        pytest.param(2.1, 0, False, 3, id="a part counts as one"),
        pytest.param(2.9, 0, True, 2, id="unless it is another's"),
        pytest.param(0.9, 0, True, 1, id="one at least, again"),
        pytest.param(4.3, 4, False, 4, id="not one more for a little"),
        pytest.param(4.5, 4, False, 5, id="one more for half a CPU"),
        pytest.param(3.0, 4, False, 3, id="fewer at once"),
        pytest.param(3.1, 4, False, 4, id="and none too few"),
    ],
)
def test_how_many(room: float, held: int, whole: bool, want: int) -> None:
    assert count(room, held, whole=whole) == want


@pytest.mark.parametrize(
    ("n", "usable", "held", "want"),
    [
        pytest.param(2, CPUS, {}, {0, 8}, id="a whole core"),
        pytest.param(4, CPUS, {}, {0, 8, 4, 12}, id="the next one in the other memory node"),
        pytest.param(3, CPUS, {}, {0, 8, 4}, id="half a core only where it must be"),
        pytest.param(2, CPUS - {8}, {}, {1, 9}, id="a core of which someone has half is not taken first"),
        pytest.param(4, CPUS, {0, 8, 4}, {0, 8, 4, 12}, id="what is begun is completed"),
        pytest.param(2, CPUS, {0, 8, 4}, {0, 8}, id="what is broken up is given back"),
        pytest.param(2, CPUS, {0, 8, 1, 9, 4, 12}, {0, 8}, id="cores of the fuller memory node go first"),
        pytest.param(4, CPUS - {0, 8}, {0, 8, 4, 12}, {1, 9, 4, 12}, id="what is lost is replaced, nothing else moves"),
        pytest.param(9, frozenset({3, 5}), {}, {3, 5}, id="all that there are"),
    ],
)
def test_which(n: int, usable: frozenset[int], held: set[int], want: set[int]) -> None:
    assert choose(n, usable, frozenset(held), SOCKETS) == want


@given(n=st.integers(1, 20), usable=sets, held=sets)
def test_as_many_as_asked_of_the_usable_and_as_few_moved_as_can_be(
    n: int, usable: frozenset[int], held: frozenset[int]
) -> None:
    chosen = choose(n, usable, held, SOCKETS)
    assert chosen <= usable
    assert len(chosen) == min(n, len(usable))
    assert len(chosen & held) == min(len(held & usable), len(chosen))
    assert choose(n, usable, chosen, SOCKETS) == chosen, "and then they stay"
