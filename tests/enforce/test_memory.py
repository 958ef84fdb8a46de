"""Memory knobs have their effect: floors keep a working set in, limits kill, and the guard looks at real usage."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from j10ce.kernel.cgroup.files import CgroupFiles
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import Setting, workload
from j10ce.model.plan import Applied, Pending, Plan, Refused, Result, ValueChange
from j10ce.model.workload import Handle, Workload
from tests.enforce.workbench import WORKING_SET, Workbench, stat

MIB = 1 << 20
ROOM, FLOOR = 56 * MIB, 32 * MIB

READ = """
import os
f = os.open({path!r}, os.O_RDONLY)
while os.read(f, 1 << 18): pass
print("read", flush=True)
{then}
"""
HOLD = """
import mmap
m = mmap.mmap(-1, {size})
for i in range(0, {size}, 4096): m[i] = 1
print("held", flush=True)
input()
"""


def kept(work: Workbench, disk: Path, knob: str) -> float:
    """The share of a working set that stays in memory while a neighbour streams through the rest of the room."""
    parent, good, bad = work.make("room"), work.make("room", "good"), work.make("room", "bad")
    work.set(parent, "memory.max", float(ROOM))
    if knob:
        work.set(parent, knob, float(FLOOR))
        work.set(good, knob, float(FLOOR))
    return kept_beside(work, disk, good, bad)


def kept_beside(work: Workbench, disk: Path, good: Handle, bad: Handle) -> float:
    Path("/proc/sys/vm/drop_caches").write_text("3")
    reader = work.spawn(good, READ.format(path=str(disk / "working-set"), then="input()"))
    assert reader.stdout is not None
    assert reader.stdout.readline() == "read\n"
    counters = work.path(good, "memory.stat")
    before = stat(counters)["file"]
    assert before > 0.9 * WORKING_SET
    assert work.spawn(bad, READ.format(path=str(disk / "stream"), then="")).wait() == 0
    return stat(counters)["file"] / before


@pytest.mark.parametrize("knob", ["memory.low", "memory.min"])
def test_a_floor_keeps_the_working_set_resident(work: Workbench, request: pytest.FixtureRequest, knob: str) -> None:
    work.setting(Handle(""), knob)  # skips where the kernel lacks it, before the disk is made
    disk = request.getfixturevalue("disk")
    assert kept(work, disk, knob) > 0.9


def test_without_a_floor_the_working_set_is_lost(work: Workbench, request: pytest.FixtureRequest) -> None:
    work.setting(Handle(""), "memory.low")
    assert kept(work, request.getfixturevalue("disk"), "") < 0.7


@pytest.mark.parametrize("unused", [0, FLOOR], ids=["no floor", "a floor that nobody uses"])
def test_a_floor_that_nobody_uses_keeps_pages_of_others_below_the_same_group(
    work: Workbench, request: pytest.FixtureRequest, unused: int
) -> None:
    """Of another tier, too, where cgroup2 is mounted with memory_recursiveprot; in a group beside, nothing."""
    work.setting(Handle(""), "memory.min")
    if not work.hierarchies.recursive_protection:
        pytest.skip("Unsupported: cgroup2 is mounted without memory_recursiveprot")
    disk = request.getfixturevalue("disk")
    room, stream = work.make("room"), work.make("room", "stream")
    work.set(room, "memory.max", float(ROOM))
    for steps in (("room", "top"), ("room", "top", "one"), ("room", "top", "one", "asleep")):
        work.set(work.make(*steps), "memory.min", float(unused))
    good = work.make("room", "top", "other", "good")
    assert (kept_beside(work, disk, good, stream) > 0.9) == bool(unused)


def test_a_limit_kills(work: Workbench) -> None:
    at = work.make("limited")
    work.set(at, "memory.max", 24.0 * MIB)
    assert work.spawn(at, HOLD.format(size=64 * MIB)).wait() == -signal.SIGKILL


class Facade:
    """The kernel facade over one adopted workload that holds 32 MiB."""

    def __init__(self, work: Workbench, tmp_path: Path, backend: CgroupFiles | None = None) -> None:
        self.at = work.make("theirs", "db")
        holder = work.spawn(self.at, HOLD.format(size=32 * MIB))
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        self.target = workload("default", "db")
        journal = Journal.open(tmp_path / "journal", "boot")
        self.kernel = Kernel(work.tree, [backend or work.backend], journal, guard=Guard())
        self.kernel.track([Workload("default", "db", handle=Handle(path=self.at.path, made=False))])

    def write(self, knob: str, value: float) -> Result:
        change = ValueChange(Setting(self.target, knob), None, value, "test", "test")
        return self.kernel.apply(Plan((change,))).results[0][1]


def test_no_limit_is_set_below_what_is_in_use(work: Workbench, tmp_path: Path) -> None:
    facade = Facade(work, tmp_path)
    result = facade.write("memory.max", 16.0 * MIB)
    assert isinstance(result, Refused)
    assert "in use, which would stall or kill" in result.reason
    assert isinstance(facade.write("memory.max", 256.0 * MIB), Applied)


class Grows(CgroupFiles):
    """The workload grows right after the guard has looked at what it uses."""

    looked = False

    def usage(self, s: Setting, at: Handle, /) -> float | None:
        before, self.looked = self.looked, True
        return super().usage(s, at) if before else 0.0


def test_a_throttle_below_the_usage_does_not_hold_up_the_ring(work: Workbench, tmp_path: Path) -> None:
    work.setting(Handle(""), "memory.high")
    facade = Facade(work, tmp_path, Grows(work.hierarchies))
    assert facade.write("memory.high", 8.0 * MIB) == Pending()
    late: list[Result] = []
    while not late:
        late += [result for _, result in facade.kernel.apply(Plan()).results]
    assert late == [Applied(8.0 * MIB)]
    assert not facade.kernel.revert().refused()
    assert work.path(facade.at, "memory.high").read_text() == "max\n"
