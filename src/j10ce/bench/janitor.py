"""Puts a machine back as it was before a run: `python -m j10ce.bench.janitor FOLDER`, at the end of standard input.

It is in a session of its own, so that Ctrl-C is not for it. The order: the agent gives back what it wrote, what it
could not is taken from its journal, processes in the run's cgroups end, the cgroups go, the folder goes.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from j10ce.bench.scratch import STOPS, Scratch, forget
from j10ce.daemon.lock import held, holder
from j10ce.errors import QosError
from j10ce.host.mounts import Hierarchies

PATIENCE_S: Final = 20.0
STEP_S: Final = 0.02
MORE: Final = ("_besteffort", "-pods", "-box", ".slice", "_besteffort.slice")  # beside the agent's own tree


class Places(NamedTuple):
    """Where the journal of the run's agent is."""

    run: Path
    config: Path


def main() -> int:
    for stop in STOPS:
        signal.signal(stop, signal.SIG_IGN)
    sys.stdin.buffer.read()
    clean(Scratch(Path(sys.argv[1])))
    return 0


def clean(scratch: Scratch) -> None:
    end_agent(scratch.run)
    groups = [*_groups(scratch.top)]
    until(lambda: not sum(map(_end, groups)))
    if (scratch.run / "journal").exists():
        from j10ce.agent.revert_offline import revert_offline

        with suppress(QosError):  # what it could not give back goes with the cgroups
            revert_offline(Places(scratch.run, scratch.folder / "etc"), force=True)
    if until(lambda: sum(map(_remove, groups)) == len(groups)):
        forget(scratch.folder)


def end_agent(run: Path) -> None:
    """As Ctrl-C does, and where that does not help by force."""
    for stop in (signal.SIGINT, signal.SIGKILL):
        pid, _ = holder(run)
        if not held(run) or not pid:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, stop)
        until(lambda: not held(run))


def until(claim: Callable[[], bool]) -> bool:
    """Whether it becomes true in time."""
    ends = time.monotonic() + PATIENCE_S
    while not (true := claim()) and time.monotonic() < ends:
        time.sleep(STEP_S)
    return true


def _groups(top: str) -> Iterator[Path]:
    """Cgroups of the run, in every hierarchy."""
    mounts = Hierarchies.discover()
    places = {mount.path for mount in (*mounts.by_controller.values(), mounts.unified) if mount}
    for place in places:
        for name in (top, *(f"{top}{more}" for more in MORE)):
            if (group := Path(place, name)).is_dir():
                yield group


def _end(group: Path) -> bool:
    """Whether there was still somebody in it."""
    pids = [pid for folder, _, _ in os.walk(group) for pid in _pids(Path(folder))]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


def _pids(folder: Path) -> list[int]:
    try:
        return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _remove(group: Path) -> bool:
    for folder, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            os.rmdir(folder)
    return not group.exists()


if __name__ == "__main__":
    sys.exit(main())
