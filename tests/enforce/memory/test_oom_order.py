"""Who is killed first when memory runs out is the one with the lowest priority, not the one that grew."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from j10ce.model.kinds import MemorySection
from j10ce.model.workload import Handle
from j10ce.testing import build
from tests.enforce.memory.real_ring import RealRing, alive, own_score, score
from tests.enforce.workbench import MIB, Workbench, until

ROOM = 96 * MIB
GROW = """
import mmap, os, sys, time
held = []
def take(size):
    m = mmap.mmap(-1, size)
    for i in range(0, size, 4096): m[i] = 1
    held.append(m)
take({size})
print("has it", flush=True)
for line in sys.stdin:
    if line == "fork\\n":
        child = os.fork()
        if not child:
            time.sleep(1000)
        print(child, flush=True)
    else:
        take(int(line))
        print("has more", flush=True)
"""


class Pair:
    """Two workloads in a room of 96 MiB; `last` and `first` by their names."""

    def __init__(self, work: Workbench, tmp_path: Path, first: int) -> None:
        self.room = work.make("room")
        self.at = {name: work.make("room", name) for name in ("first", "last")}
        work.set(self.room, "memory.max", float(ROOM))
        self.processes = {name: self.start(work, at) for name, at in self.at.items()}
        profiles = [build.profile("first", memory=MemorySection(oom_priority=first)), build.profile("last")]
        self.ring = RealRing(work, tmp_path, profiles)
        handles = {name: build.handle(at.path) for name, at in self.at.items()}
        self.ring.arrive(*(build.workload(name, profile=name, handle=handle) for name, handle in handles.items()))
        self.ring.seconds(2)

    def start(self, work: Workbench, at: Handle) -> subprocess.Popen[str]:
        child = work.spawn(at, GROW.format(size=24 * MIB))
        assert child.stdout is not None
        assert child.stdout.readline() == "has it\n"
        return child

    def ask(self, name: str, word: str) -> None:
        stdin = self.processes[name].stdin
        assert stdin is not None
        stdin.write(f"{word}\n")
        stdin.flush()

    def answer(self, name: str) -> str:
        stdout = self.processes[name].stdout
        assert stdout is not None
        return stdout.readline()

    def dead(self) -> set[str]:
        return {name for name, child in self.processes.items() if not alive(child.pid)}


@pytest.mark.parametrize(("priority", "victim"), [(-1000, "first"), (0, "last")], ids=["as said", "nothing said"])
def test_the_one_with_the_lowest_priority_goes_though_the_other_grew(
    work: Workbench, tmp_path: Path, priority: int, victim: str
) -> None:
    pair = Pair(work, tmp_path, priority)
    pair.ask("last", str(48 * MIB))
    until(lambda: bool(pair.dead()))
    assert pair.dead() == {victim}


def test_a_process_that_comes_later_has_it_too_and_in_the_end_each_has_its_own_back(
    work: Workbench, tmp_path: Path
) -> None:
    pair = Pair(work, tmp_path, -700)
    before, parent = own_score(), pair.processes["first"].pid
    assert score(parent) == 700
    pair.ask("first", "fork")
    child = int(pair.answer("first"))
    later = pair.start(work, pair.at["first"])
    work.processes.append(later)
    pair.ring.seconds(12)
    assert [score(pid) for pid in (parent, child, later.pid)] == [700, 700, 700]
    assert not pair.ring.kernel.drift()
    assert not pair.ring.kernel.revert().refused()
    assert [score(pid) for pid in (parent, child, later.pid)] == [before] * 3
