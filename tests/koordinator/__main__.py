"""Runs case files: `python -m tests.koordinator DIR`.

A file is {"suite", "conventions", "cases": [{"id", "description", "input": {"op", …}, "expected"}]}. Every `op` is one
row of a table that leads to one pure function. A case passes, deviates as documented in docs/koordinator.md, or fails.

Exit status: 0, or 1 when a case failed, or 2 when there is nothing to run.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from tests.koordinator.judge import judged


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tests.koordinator DIR", file=sys.stderr)
        return 2
    files = sorted(Path(arguments[0]).glob("*.json"))
    totals = sum((run(file) for file in files), Counter[str]())
    print(line("total", totals))
    return 2 if not totals else int(totals["fail"] > 0)


def run(file: Path) -> Counter[str]:
    """The outcomes of one file, which are printed; what did not pass is told case by case."""
    counts = Counter[str]()
    lines = []
    for case in json.loads(file.read_text())["cases"]:
        verdict = judged(case)
        counts[verdict.outcome] += 1
        if verdict.outcome != "pass":
            lines.append(f"  {verdict.outcome} {case['id']}: {verdict.why}")
    print("\n".join([line(file.stem, counts), *lines]))
    return counts


def line(name: str, counts: Counter[str]) -> str:
    return f"{name}: {counts['pass']} pass, {counts['deviation']} documented deviation, {counts['fail']} fail"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
