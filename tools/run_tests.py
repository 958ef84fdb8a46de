"""Run every suite in turn, show its output as it comes, and close with one line per suite."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PYTEST = [sys.executable, "-m", "pytest"]
LAB = [sys.executable, "-m", "tests.lab", "pytest"]


class Suite(NamedTuple):
    name: str
    command: list[str]


class Ending(NamedTuple):
    status: int
    summary: str
    took_s: float


# One after the other: the enforcement suites measure shares of the CPU and want the machine for themselves.
SUITES = [
    Suite("quick", [*PYTEST, "-n", "2", "-m", "not host and not vm and not vm_systemd and not kube and not soak"]),
    Suite("host kernel", [*PYTEST, "-m", "host and not kube"]),
    Suite("guest, cgroup v2", [*LAB, "--", "-m", "host or vm", "tests/enforce"]),
    Suite("Kubernetes", [*PYTEST, "-m", "kube", "tests/kube"]),
    Suite("guest, systemd", [*LAB, "--systemd", "--", "-m", "vm_systemd", "tests/systemd"]),
]


def main() -> int:
    endings = {suite.name: run(suite) for suite in SUITES}
    print("\n=== all suites ===")
    for name, ending in endings.items():
        verdict = "ok  " if ending.status == 0 else "FAIL"
        print(f"{verdict} {name:<18} {ending.took_s:5.0f} s  {ending.summary}")
    return max(ending.status != 0 for ending in endings.values())


def run(suite: Suite) -> Ending:
    print(f"\n=== {suite.name}: {' '.join(suite.command[1:])}", flush=True)
    started = time.monotonic()
    summary = "no summary"
    with subprocess.Popen(
        suite.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as child:
        for line in child.stdout or ():
            print(line, end="", flush=True)
            if " in " in line and ("passed" in line or "failed" in line or "error" in line):
                summary = line.strip().strip("= ")
    return Ending(child.returncode, summary, time.monotonic() - started)


if __name__ == "__main__":
    sys.exit(main())
