"""The end of a run: one line per suite, what was left out and why, what is unsteady, and what comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tools.testing.lanes import Ending
from tools.testing.suites import NEXT, VERBS, suites_of


def lines(verb: str, endings: Mapping[str, Ending]) -> Iterator[str]:
    yield f"\n{'make ' + verb:<19}{'took':>7}  tests"
    for name, ending in endings.items():
        yield f"{'FAIL' if ending.status else 'ok':<5}{name:<14}{clock(ending.took_s):>7}  {outcome(ending)}"
    reasons = sum((ending.reading.left_out for ending in endings.values()), Counter[str]())
    for reason, tests in reasons.most_common():
        yield f"left out: {tests} × {reason}"
    for name, ending in endings.items():
        yield from (f"unsteady in {name}: {test}" for test in ending.unsteady)
    if following := NEXT.get(verb):
        added = "; ".join(suite.holds for suite in suites_of(VERBS[following]))
        yield f"`make {following}` adds: {added}."


def outcome(ending: Ending) -> str:
    """`249 passed, 3 passed at the second try`"""
    counts = dict(ending.reading.counts)
    counts.pop("deselected", None)
    counts["left out"] = counts.pop("skipped", 0)
    if ending.unsteady:
        for word in ("failed", "error", "errors"):
            counts.pop(word, None)
        counts["passed at the second try"] = len(ending.unsteady)
    said = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
    return said or f"no result, exit status {ending.status}"


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
