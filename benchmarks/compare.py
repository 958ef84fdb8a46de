"""`python -m benchmarks.compare REVISION [ROUNDS]`: the agent of an earlier revision and of this tree, in turns.

Both run on the same machine in the same minutes, so that what differs is the code. CPU times are the agent's own; on a
busy machine they grow by caches that others use, for both alike. Medians over the rounds are printed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
WORKLOADS, ARRIVALS, TICKS = 200, 60, 12
MOST_PERCENT = 3.0  # worse than before; more is a failure
IMPORT = "import j10ce.agent.main; print(open('/proc/self/status').read().split('VmRSS:')[1].split()[0])"


def main() -> int:
    revision, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4
    with tempfile.TemporaryDirectory(prefix="j10cebench-") as folder:
        archive = subprocess.run(["git", "archive", revision], cwd=HERE, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        trees = {"before": Path(folder), "after": HERE}
        rows: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
        for _ in range(rounds):
            for name, tree in trees.items():
                rows[name].append(measured(tree))
                print(name, json.dumps(rows[name][-1]), flush=True)
    print(f"{'':32} {'before':>9} {'after':>9}   change")
    worst = 0.0
    for what in rows["before"][0]:
        before, after = (statistics.median(row[what] for row in rows[name]) for name in trees)
        worst = max(worst, change := (after / before - 1) * 100)
        print(f"{what:32} {before:9.2f} {after:9.2f}   {change:+.1f} %")
    return int(worst > MOST_PERCENT)


def measured(tree: Path) -> dict[str, float]:
    """In a process of its own, with the sources and the benchmark of that tree."""
    environ = {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{tree}"}
    code = f"import runpy; runpy.run_path({str(Path(__file__))!r}, run_name='measure')"
    imported = subprocess.run([sys.executable, "-c", IMPORT], cwd=tree, env=environ, check=True, capture_output=True)
    ran = subprocess.run([sys.executable, "-c", code], cwd=tree, env=environ, check=True, stdout=subprocess.PIPE)
    return {"memory at import, MiB": int(imported.stdout) / 1024, **json.loads(ran.stdout)}


def measure() -> None:
    from benchmarks import agent as bench  # that of the tree
    from j10ce.errors import NotFound

    bench.QUIET_TICKS = TICKS
    cpu, ticks = "j10ce_ring_cpu_seconds_total", 'j10ce_ring_runs_total{cause="tick"}'
    with bench.running() as agent:
        for n in range(WORKLOADS):
            agent.place(n)
        tick = bench.quiet_tick(agent, WORKLOADS)
        spent, ran = agent.metric(cpu), agent.metric(ticks)
        for _ in range(ARRIVALS):
            agent.place(WORKLOADS, inhabited=False)
            with suppress(NotFound):  # a tick was quicker: nobody lives in it
                agent.remove(WORKLOADS, inhabited=False)
        changes_ms = (agent.metric(cpu) - spent) * 1000 - (agent.metric(ticks) - ran) * tick.cpu_ms
    row = {
        "quiet tick at 200, CPU ms": tick.cpu_ms,
        "arrival and end at 200, CPU ms": changes_ms / ARRIVALS,
        "memory at 200, MiB": tick.memory_mib,
    }
    print(json.dumps({name: round(value, 3) for name, value in row.items()}))


if __name__ == "__main__":
    sys.exit(main())
if __name__ == "measure":
    measure()
