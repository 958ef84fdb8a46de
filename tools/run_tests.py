"""Run the suites, show their output as it comes, and close with one line per suite; names of suites choose some.

A few failures are tried once more, alone on the machine: what passes then depends on load or on its neighbours. Such
tests are named at the end as unsteady, so that someone mends them; what fails again is a failure.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PYTEST = [sys.executable, "-m", "pytest", "--durations=12"]
LAB = [sys.executable, "-m", "tests.lab", "pytest"]
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$")
COUNTED = re.compile(r"(\d+) (?:failed|error)")
MOST_AGAIN = 8  # more than that is no accident


class Suite(NamedTuple):
    name: str
    command: list[str]
    where: tuple[str, ...] = ()  # replaced by the names of single tests when they are tried again
    spread: tuple[str, ...] = ()


class Ending(NamedTuple):
    status: int
    summary: str
    took_s: float
    failed: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()


FLEET = ("tests/etcd", "tests/fleet", "tests/trace")  # several hosts in network namespaces; no shares are measured
ON_HOST = [*PYTEST, "-m", "host and not kube"]
# Stages one after the other, the lanes of a stage side by side, the suites of a lane one after the other. Suites that
# measure shares of this machine's CPUs have a stage to themselves; guests measure inside, the others mostly wait.
STAGES: Sequence[Sequence[Sequence[Suite]]] = [
    [
        [
            Suite(
                "quick",
                [*PYTEST, "-m", "not host and not vm and not vm_systemd and not kube and not soak"],
                spread=("-n2",),
            ),
        ]
    ],
    [[Suite("host", [*ON_HOST, *(f"--ignore={path}" for path in FLEET)])]],
    [
        [
            Suite("guest-v2", [*LAB, "--", "-m", "(host or vm) and not real_cpus"], ("tests/enforce",)),
            Suite("guest-systemd", [*LAB, "--systemd", "--", "-m", "vm_systemd"], ("tests/systemd",)),
        ],
        [
            Suite("kube", [*PYTEST, "-m", "kube and not soak"], ("tests/kube",)),
        ],
        [
            Suite("fleet", ON_HOST, FLEET),
        ],
    ],
]


def main(chosen: Sequence[str]) -> int:
    known = [suite.name for stage in STAGES for lane in stage for suite in lane]
    if unknown := set(chosen) - set(known):
        sys.exit(f"run_tests: no suite is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    endings: dict[str, Ending] = {}
    for stage in STAGES:
        lanes = [[suite for suite in lane if not chosen or suite.name in chosen] for lane in stage]
        endings |= side_by_side([lane for lane in lanes if lane])
    print("\n=== all suites ===")
    for name, ending in endings.items():
        verdict = "ok  " if ending.status == 0 else "FAIL"
        print(f"{verdict} {name:<14} {ending.took_s:5.0f} s  {ending.summary}")
    for name, ending in endings.items():
        for test in ending.unsteady:
            print(f"unsteady in {name}: {test}")
    return max(ending.status != 0 for ending in endings.values())


def side_by_side(lanes: Sequence[Sequence[Suite]]) -> dict[str, Ending]:
    """How each suite ended, once what failed has had a second chance with the machine for itself."""
    with ThreadPoolExecutor(max(len(lanes), 1)) as pool:
        endings = [*pool.map(partial(in_turn, told=len(lanes) > 1), lanes)]
    suites = [suite for lane in lanes for suite in lane]
    firsts = [ending for lane in endings for ending in lane]
    return {suite.name: settled(suite, first) for suite, first in zip(suites, firsts, strict=True)}


def in_turn(suites: Iterable[Suite], *, told: bool) -> list[Ending]:
    return [run(suite.name, [*suite.command, *suite.spread, *suite.where], told=told) for suite in suites]


def settled(suite: Suite, first: Ending) -> Ending:
    all_named = len(first.failed) == sum(map(int, COUNTED.findall(first.summary)))
    if first.status != 1 or not all_named or not 0 < len(first.failed) <= MOST_AGAIN:
        return first
    again = run(f"{suite.name}, again", [*suite.command, *first.failed])
    took_s = first.took_s + again.took_s
    if again.status:
        return first._replace(took_s=took_s)
    return Ending(0, first.summary, took_s, (), first.failed)


def run(name: str, command: list[str], *, told: bool = False) -> Ending:
    """Every line begins with the suite's name where another suite runs beside it."""
    print(f"\n=== {name}: {' '.join(command[1:])}", flush=True)
    mark = f"{name:<14}| " if told else ""
    started = time.monotonic()
    summary, failed = "no summary", []
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout or ():
            print(f"{mark}{line}", end="", flush=True)
            if " in " in line and ("passed" in line or "failed" in line or "error" in line):
                summary = line.strip().strip("= ")
            if found := FAILED.match(line.strip()):
                failed.append(found[1])
    return Ending(child.returncode, summary, time.monotonic() - started, tuple(dict.fromkeys(failed)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
