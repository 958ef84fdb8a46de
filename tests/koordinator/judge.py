"""What becomes of one case."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from j10ce.errors import Invalid
from tests.koordinator import ops_cgroup, ops_cpu, ops_evict, ops_node, ops_pod

OPS: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    **ops_cgroup.OPS,
    **ops_cpu.OPS,
    **ops_evict.OPS,
    **ops_node.OPS,
    **ops_pod.OPS,
}
ERROR = {"error": True}
# Where we mean to differ: the op, whether this is such a case, and the heading in docs/koordinator.md.
DEVIATIONS: tuple[tuple[str, Callable[[dict[str, Any], Any], bool], str], ...] = (
    (
        "adjust_by_cpuset",
        lambda case, got: failed(case["expected"]) and got.says(case["input"].get("old_cpuset") or ""),
        "no CPU is left to best effort: its CPUs stay, where theirs divides by zero",
    ),
    (
        "be_memory_evict",
        lambda case, _: len({pod.get("priority") is None for pod in case["input"]["pods"]}) > 1,
        "some pods have a priority and some have none: those without go first",
    ),
)


@runtime_checkable
class Answer(Protocol):
    """What compares itself with what a case expects."""

    def says(self, expected: Any, /) -> bool: ...


class Judgement(NamedTuple):
    outcome: Literal["pass", "deviation", "fail"]
    why: str = ""


def judged(case: dict[str, Any]) -> Judgement:
    op = case["input"].get("op")
    if op not in OPS:
        return Judgement("fail", f"no function for op {op!r}")
    try:
        got = OPS[op](case["input"])
    except Invalid:
        got = ERROR
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        return Judgement("fail", f"op {op} does not know this shape: {type(e).__name__}: {e}")
    expected = case["expected"]
    if same(expected, got):
        return Judgement("pass")
    for name, meant, why in DEVIATIONS:
        if name == op and meant(case, got):
            return Judgement("deviation", why)
    return Judgement("fail", f"expected {json_like(expected)}, got {json_like(got)}")


def failed(expected: Any) -> bool:
    return isinstance(expected, dict) and bool(expected.get("error") or expected.get("panic"))


def same(expected: Any, got: Any) -> bool:
    """Equal; numbers to nine digits; of an error that there is one; an answer may know better."""
    if failed(expected):
        return bool(got == ERROR)
    if isinstance(got, Answer):
        return got.says(expected)
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(same(value, got[key]) for key, value in expected.items())
    if isinstance(expected, list) and isinstance(got, list | tuple):
        return len(expected) == len(got) and all(map(same, expected, got))
    if isinstance(expected, float) and isinstance(got, int | float):
        return math.isclose(expected, got, rel_tol=1e-9, abs_tol=1e-12)
    return bool(expected == got) and isinstance(expected, bool) == isinstance(got, bool)


def json_like(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:400]}…"
