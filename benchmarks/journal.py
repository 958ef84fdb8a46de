"""What a line of the journal costs as the journal grows: on average with its rewriting, and the slowest one."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.facts import machine_facts
from j10ce.kernel.record.entry import Original, wrote
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import KNOBS, Setting, workload
from j10ce.model.workload import Handle

GROWTH = (100, 300, 1000, 3000)
BUDGET_MS = 0.5  # a write on average, at 1,000 workloads
WRITES = 20_000


def main() -> int:
    machine_facts()
    print(f"{'workloads':>9} {'settings':>9} {'file MiB':>9} {'median ms':>10} {'mean ms':>9} {'slowest ms':>11}")
    late = False
    for workloads in GROWTH:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            row = measure(workloads, Path(folder) / "journal")
        print("{:9} {:9} {:9.2f} {:10.4f} {:9.4f} {:11.2f}".format(workloads, *row))
        late |= workloads == 1000 and row[3] > BUDGET_MS
    print(f"at 1000: mean ≤ {BUDGET_MS:g} ms: {'MISSED' if late else 'met'}")
    return late


def measure(workloads: int, path: Path) -> tuple[int, float, float, float, float]:
    """Settings, size, and wall-clock milliseconds of the writes that follow when all workloads are in."""
    journal = Journal.open(path, "boot")
    settings = [Setting(workload("default", f"w{n}"), knob) for n in range(workloads) for knob in list(KNOBS)[:7]]
    for setting in settings:
        at = Handle(f"j10ce/standard/default_{setting.target.rpartition('/')[2]}")
        journal.add(Original(*setting, at, 7, "cgroup2", '{"cpu.weight":"100"}', 1024.0), wrote(setting, 1.0, "floors"))
    times = []
    for n in range(WRITES):
        begun = time.perf_counter()
        journal.add(wrote(settings[n % len(settings)], float(n), "floors"))
        times.append((time.perf_counter() - begun) * 1e3)
    journal.close()
    size = path.stat().st_size / 2**20
    return len(settings), size, statistics.median(times), statistics.fmean(times), max(times)


if __name__ == "__main__":
    raise SystemExit(main())
