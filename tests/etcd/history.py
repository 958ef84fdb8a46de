"""Histories of a register that several clients share, and whether one order of its operations explains them all.

The search is Wing and Gong's: an operation may come next in the order only if no other one had returned before it was
called. What failed for sure is left out, so that nobody may ever see its value. What ended unknown may have happened at
any time after it was called, or never.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

Value = int | None  # None: there is no object
Kind = Literal["get", "put", "cas", "create", "delete"]
Outcome = Literal["ok", "conflict", "unknown"]


class Operation(NamedTuple):
    """`expected` of a cas is the value it was based on; `seen` of a get or a delete is what it answered."""

    kind: Kind
    called: int
    returned: float = math.inf
    outcome: Outcome = "ok"
    value: Value = None
    expected: Value = None
    seen: Value = None


def is_linearizable(history: Sequence[Operation], start: Value = None) -> bool:
    """Whether there is an order that respects both real time and what every operation got as its answer."""
    ops = sorted(history, key=lambda op: op.called)
    known = sum(1 << n for n, op in enumerate(ops) if op.outcome != "unknown")
    tried: set[tuple[int, Value]] = set()
    stack: list[tuple[int, Value]] = [(0, start)]
    while stack:
        done, state = stack.pop()
        if done & known == known:
            return True
        for n in _next(ops, done):
            for after in _after(ops[n], state):
                step = (done | 1 << n, after)
                if step not in tried:
                    tried.add(step)
                    stack.append(step)
    return False


def _next(ops: Sequence[Operation], done: int) -> Iterator[int]:
    """What was called before anything that is still open had returned."""
    first_return = math.inf
    for n, op in enumerate(ops):
        if op.called > first_return:
            return
        if not done >> n & 1:
            yield n
            first_return = min(first_return, op.returned)


def _after(op: Operation, state: Value) -> tuple[Value, ...]:
    """The state after the operation, or nothing when it cannot have happened in this state with that answer."""
    match op.outcome, op.kind:
        case "ok", "get":
            return (state,) if state == op.seen else ()
        case "ok", "put":
            return (op.value,)
        case "ok", "cas":
            return (op.value,) if state == op.expected else ()
        case "ok", "create":
            return (op.value,) if state is None else ()
        case "ok", "delete":
            return (None,) if state is not None and state == op.seen else ()
        case "conflict", "cas":
            return (state,) if state != op.expected else ()
        case "conflict", "create":
            return (state,) if state is not None else ()
        case "conflict", "delete":
            return (state,) if state is None else ()
        case "unknown", "put":
            return (op.value,)
        case "unknown", "cas":
            return (op.value,) if state == op.expected else ()
        case "unknown", "create":
            return (op.value,) if state is None else ()
        case "unknown", "delete":
            return (None,)
        case _:
            return (state,)
