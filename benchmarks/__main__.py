"""`python -m benchmarks [NAME…]`: run all, or the named ones, one after the other."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.testing.progress import durations, remembered

HERE = Path(__file__).parent
NOT_ONE = {"__init__", "__main__", "compare", "facts"}
USUAL_S = 60.0  # of one that has not run on this machine


def main() -> int:
    known = sorted(p.stem for p in HERE.glob("*.py") if p.stem not in NOT_ONE)
    wanted = sys.argv[1:] or known
    if unknown := set(wanted) - set(known):
        print(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = []
    for number, name in enumerate(wanted):
        print(f"\n== {heading(wanted, number, durations(remembered()))}", flush=True)
        started = time.monotonic()
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=HERE.parent).returncode:
            failed.append(name)
        else:
            remember(name, time.monotonic() - started)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


def heading(wanted: Sequence[str], number: int, took: Mapping[str, float]) -> str:
    """`3 of 20  latency  about 12 min left`, by what each took on this machine the last time."""
    minutes = round(sum(took.get(key(name), USUAL_S) for name in wanted[number:]) / 60)
    left = f"about {minutes} min left" if minutes else "less than a minute left"
    return f"{number + 1} of {len(wanted)}  {wanted[number]}  {left}"


def key(name: str) -> str:
    """As it is remembered, beside the suites of tests."""
    return f"benchmark {name}"


def remember(name: str, took_s: float) -> None:
    file = remembered()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(durations(file) | {key(name): round(took_s)}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
