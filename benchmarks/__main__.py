"""`python -m benchmarks [NAME…]`: run all, or the named ones, one after the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NOT_ONE = {"__init__", "__main__", "compare", "facts"}


def main() -> int:
    known = sorted(p.stem for p in HERE.glob("*.py") if p.stem not in NOT_ONE)
    wanted = sys.argv[1:] or known
    if unknown := set(wanted) - set(known):
        print(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = []
    for name in wanted:
        print(f"\n== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=HERE.parent).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
