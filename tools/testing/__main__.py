"""python -m tools.testing VERB [SUITE...]: a verb of the Makefile, or some of its suites."""

from __future__ import annotations

import sys
import time

from tools.testing import lanes, suites, table
from tools.testing.progress import Progress, remembered


def main(words: list[str]) -> int:
    verb, *names = words or [""]
    if verb not in suites.VERBS:
        sys.exit(f"usage: python -m tools.testing {'|'.join(suites.VERBS)} [SUITE...]; not {verb!r}")
    stages = suites.chosen(verb, names)
    started = time.monotonic()
    endings = lanes.run(stages, Progress(stages, remembered()))
    print(*table.lines(verb, endings), sep="\n")
    print(f"{table.clock(time.monotonic() - started)} minutes in all; what every test said is in {lanes.LOGS.name}/")
    return int(any(ending.status for ending in endings.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
