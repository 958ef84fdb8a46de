"""How long the control plane is without a leader, and its users without writes, when the leader is killed or hangs.

Three etcd members, three managers and writers on this machine; the issue allows three lease times.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path

from j10ce.store.etcd.elector import TTL_S
from tests.fleet.failover import under_load

ROUNDS = 6
ALLOWED = 3  # lease times


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, under_load(Path(folder)) as control:
        rounds = [control.fail_over(how) for how in islice(cycle(("kill", "hang")), ROUNDS)]
        writes = control.settle()
    for how in ("kill", "hang"):
        written = [r.written_s for r in rounds if r.how == how]
        led = [r.led_s for r in rounds if r.how == how]
        print(
            f"leader {how:5} writes again after {statistics.median(written):5.2f} s (at most {max(written):.2f}), "
            f"led again after {statistics.median(led):5.2f} s (at most {max(led):.2f})"
        )
    worst = max(r.led_s for r in rounds) / TTL_S
    print(f"at most {worst:.2f} lease times of {TTL_S} s, {ALLOWED} allowed; {writes} acknowledged writes, none lost")
    return worst > ALLOWED


if __name__ == "__main__":
    sys.exit(main())
