"""Taking memory back on a real cgroup v2 kernel: what is left of a cold workload after a minute, and of a hot one.

The measurement is that of tests/enforce/memory/test_reclaim.py, made in a guest: a workload that read 120 MiB once, and
one that reads its 24 MiB again every second. The ring's clock is moved by the test, so that a slow guest is no slower.
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Final

from benchmarks.facts import machine_facts

TEST: Final = ("-m", "host or vm", "-s", "-k", "half_as_large", "tests/enforce/memory/test_reclaim.py")
LINE: Final = re.compile(r"cold: ([0-9.]+)% left; hot: ([0-9.]+)% kept, ([0-9.]+)% of it read back")
MOST_COLD, LEAST_HOT, MOST_BACK = 50.0, 98.0, 5.0  # percent


def main() -> int:
    machine_facts()
    done = subprocess.run([sys.executable, "-m", "tests.lab", "pytest", "--", *TEST], capture_output=True, text=True)
    measured = LINE.search(done.stdout)
    if measured is None:
        print(done.stdout[-4000:], done.stderr[-2000:], file=sys.stderr)
        return 1
    cold, hot, back = map(float, measured.groups())
    met = cold <= MOST_COLD and hot >= LEAST_HOT and back <= MOST_BACK
    print(f"cold workload after 60 s: {cold:g} % left; hot one: {hot:g} % kept, {back:g} % of it read back")
    print(f"≤ {MOST_COLD:g} %, ≥ {LEAST_HOT:g} %, ≤ {MOST_BACK:g} %: {'met' if met else 'MISSED'}")
    return not met


if __name__ == "__main__":
    sys.exit(main())
