"""The checker accepts what one register can do, and rejects what it cannot."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.etcd.history import Operation, Value, is_linearizable


def op(kind: str, called: int, returned: float, **fields: object) -> Operation:
    return Operation(kind, called, returned, **fields)  # type: ignore[arg-type]


GOOD = [
    pytest.param([], id="nothing happened"),
    pytest.param([op("put", 0, 1, value=1), op("get", 2, 3, seen=1)], id="a write is read"),
    pytest.param([op("put", 0, 3, value=1), op("get", 1, 2, seen=None)], id="a read during a write sees before"),
    pytest.param([op("put", 0, 3, value=1), op("get", 1, 2, seen=1)], id="or after"),
    pytest.param(
        [op("put", 0, 1, value=1), op("put", 2, math.inf, value=2, outcome="unknown"), op("get", 3, 4, seen=1)],
        id="an unknown write may not have happened",
    ),
    pytest.param(
        [
            op("put", 0, 1, value=1),
            op("put", 2, math.inf, value=2, outcome="unknown"),
            op("get", 3, 4, seen=1),
            op("get", 5, 6, seen=2),
        ],
        id="and may happen late",
    ),
    pytest.param(
        [
            op("create", 0, 5, value=1),
            op("create", 1, 4, value=2, outcome="conflict"),
            op("delete", 6, 7, seen=1),
            op("delete", 8, 9, outcome="conflict"),
        ],
        id="one create wins, one delete wins",
    ),
    pytest.param(
        [
            op("put", 0, 1, value=1),
            op("cas", 2, 5, expected=1, value=2),
            op("cas", 3, 4, expected=1, outcome="conflict"),
        ],
        id="of two swaps one wins",
    ),
]

BAD = [
    pytest.param([op("put", 0, 1, value=1), op("get", 2, 3, seen=None)], id="a lost write"),
    pytest.param(
        [op("put", 0, 1, value=1), op("put", 2, 3, value=2), op("get", 4, 5, seen=1)], id="a lost second write"
    ),
    pytest.param(
        [op("put", 0, 9, value=1), op("get", 1, 2, seen=1), op("get", 3, 4, seen=None)], id="a read that goes back"
    ),
    pytest.param([op("get", 0, 1, seen=7)], id="a value that nobody wrote, or whose write failed"),
    pytest.param(
        [
            op("put", 0, 1, value=1),
            op("cas", 2, 5, expected=1, value=2),
            op("cas", 3, 4, expected=1, value=3),
        ],
        id="two winners of one swap",
    ),
    pytest.param([op("create", 0, 3, value=1), op("create", 1, 2, value=2)], id="two winners of one name"),
    pytest.param(
        [op("create", 0, 1, value=1), op("delete", 2, 3, seen=1), op("get", 4, 5, seen=1)],
        id="a deleted object is back",
    ),
    pytest.param([op("put", 0, 1, value=1), op("delete", 2, 3, outcome="conflict")], id="it was there"),
    pytest.param(
        [op("put", 0, 1, value=1), op("cas", 2, 3, expected=1, value=2, outcome="conflict")], id="nobody was faster"
    ),
    pytest.param(
        [op("put", 0, 1, value=1), op("get", 2, 3, seen=2), op("put", 4, math.inf, value=2, outcome="unknown")],
        id="an unknown write that was read before it was called",
    ),
    pytest.param(
        [
            op("put", 0, 1, value=1),
            op("put", 2, math.inf, value=2, outcome="unknown"),
            op("get", 3, 4, seen=2),
            op("put", 5, 6, value=3),
            op("get", 7, 8, seen=2),
        ],
        id="an unknown write that happened twice",
    ),
]


@pytest.mark.parametrize("history", GOOD)
def test_possible_histories_are_accepted(history: list[Operation]) -> None:
    assert is_linearizable(history)


@pytest.mark.parametrize("history", BAD)
def test_impossible_histories_are_rejected(history: list[Operation]) -> None:
    assert not is_linearizable(history)


@st.composite
def happened(draw: st.DrawFn) -> list[Operation]:
    """A history made by a register: operations take effect one after the other, each at some point of its span."""
    values = itertools.count(1)
    state: Value = None
    ops = []
    for n in range(draw(st.integers(1, 12))):
        at = 100 * n
        span = {"called": at - draw(st.integers(0, 250)), "returned": float(at + draw(st.integers(0, 250)))}
        value, kind = next(values), draw(st.sampled_from(["get", "put", "cas", "create", "delete"]))
        stale = draw(st.integers(0, n))
        if kind == "get":
            ops.append(Operation("get", **span, seen=state))  # type: ignore[arg-type]
        elif kind == "put":
            ops.append(Operation("put", **span, value=value))  # type: ignore[arg-type]
            state = value
        elif kind == "delete":
            ops.append(Operation("delete", **span, outcome="conflict" if state is None else "ok", seen=state))  # type: ignore[arg-type]
            state = None
        else:
            expected = None if kind == "create" else stale
            won = state == expected
            outcome = "ok" if won else "conflict"
            ops.append(Operation(kind, **span, outcome=outcome, value=value, expected=expected))  # type: ignore[arg-type]
            state = value if won else state
    return ops


@given(happened())
def test_whatever_a_register_does_is_accepted(history: list[Operation]) -> None:
    assert is_linearizable(history)


@given(happened(), st.data())
def test_a_value_from_nowhere_is_rejected_wherever_it_is_read(history: list[Operation], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(history)))
    assert not is_linearizable([*history[:at], Operation("get", 150, 151, seen=999), *history[at:]])
