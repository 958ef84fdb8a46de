"""Memory that nobody uses goes back, memory that is in use stays: by the kernel's own counters."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from j10ce.model import knob
from j10ce.model.kinds import MemorySection, QoSProfile, ReclaimSection
from j10ce.model.knob import Deed
from j10ce.model.plan import Applied
from j10ce.model.quantity import Quantity
from j10ce.model.workload import Handle, Part, Workload
from j10ce.testing import build
from tests.enforce.memory.real_ring import RealRing
from tests.enforce.workbench import MIB, STREAM, WORKING_SET, Workbench, stat

PAGE = 4096
COLD = """
import os
f = os.open({path!r}, os.O_RDONLY)
while os.read(f, 1 << 18): pass
print("read", flush=True)
input()
"""
HOT = """
import os
f = os.open({path!r}, os.O_RDONLY)
while True:
    os.lseek(f, 0, 0)
    while os.read(f, 1 << 18): pass
    print("again", flush=True)
    input()
"""


def profile(memory: MemorySection) -> QoSProfile:
    return build.profile("thrifty", memory=memory)


def adopted(name: str, at: Handle, **fields: object) -> Workload:
    return build.workload(name, profile="thrifty", handle=build.handle(at.path), **fields)  # type: ignore[arg-type]


@pytest.fixture
def reclaiming(work: Workbench, request: pytest.FixtureRequest) -> Path:
    """Where files are; skips where the kernel cannot be asked for memory."""
    support = work.backend.deeds()[Deed.RECLAIM]
    if not support.ok:
        pytest.skip(f"Unsupported: reclaim needs {support.needs}")
    disk: Path = request.getfixturevalue("disk")
    Path("/proc/sys/vm/drop_caches").write_text("3")  # what whoever wrote the files has of them in memory
    return disk


class Touching:
    """A process that has read a file, and reads it again whenever it is asked to."""

    def __init__(self, work: Workbench, at: Handle, code: str, path: Path) -> None:
        self.child = work.spawn(at, code.format(path=str(path)))
        self.wait()

    def wait(self) -> None:
        assert self.child.stdout is not None
        assert self.child.stdout.readline()

    def again(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        self.wait()


def test_what_is_cold_is_half_as_large_after_a_minute_and_what_is_hot_stays(
    work: Workbench, tmp_path: Path, reclaiming: Path
) -> None:
    cold_at, hot_at = work.make("cold"), work.make("hot")
    Touching(work, cold_at, COLD, reclaiming / "stream")
    hot = Touching(work, hot_at, HOT, reclaiming / "working-set")
    hot.again()  # read twice: the kernel knows by then that it is in use
    ring = RealRing(work, tmp_path, [profile(MemorySection(reclaim=ReclaimSection(enabled=True)))])
    ring.arrive(adopted("cold", cold_at), adopted("hot", hot_at))

    def used(at: Handle) -> int:
        return int(work.path(at, "memory.current").read_text())

    def refaults(at: Handle) -> int:
        counters = stat(work.path(at, "memory.stat"))
        return sum(n for name, n in counters.items() if name.startswith("workingset_refault"))

    cold_before, hot_before = used(cold_at), used(hot_at)
    assert cold_before > 0.9 * STREAM
    done = ring.seconds(60, hot.again)
    left, kept = used(cold_at) / cold_before, used(hot_at) / hot_before
    back = refaults(hot_at) * PAGE / WORKING_SET
    print(f"cold: {left:.1%} left; hot: {kept:.1%} kept, {back:.1%} of it read back")
    assert left <= 0.5
    assert kept >= 0.98
    assert back <= 0.05
    assert refaults(cold_at) == 0
    assert all(isinstance(result, Applied) for _, result in done)


def test_what_was_promised_stays_also_where_it_is_cold(work: Workbench, tmp_path: Path, reclaiming: Path) -> None:
    at, floor = work.make("cold"), 100 * MIB
    Touching(work, at, COLD, reclaiming / "stream")
    ring = RealRing(work, tmp_path, [profile(MemorySection(reclaim=ReclaimSection(enabled=True)))])
    ring.arrive(adopted("cold", at, min_memory=str(floor)))
    ring.seconds(60)
    left = int(work.path(at, "memory.current").read_text())
    print(f"{left / MIB:.0f} MiB left of a floor of {floor / MIB:.0f}")
    assert 0.97 * floor <= left <= 0.95 * STREAM  # the kernel takes a batch of pages more than it is asked for


def test_page_cache_above_its_limit_goes(work: Workbench, tmp_path: Path, reclaiming: Path) -> None:
    at = work.make("reader")
    Touching(work, at, COLD, reclaiming / "stream")
    limited = MemorySection(page_cache_limit=Quantity(32 * MIB))
    ring = RealRing(work, tmp_path, [profile(limited)])
    ring.arrive(adopted("reader", at))
    ring.seconds(10)
    cache = stat(work.path(at, "memory.stat"))["file"]
    print(f"{cache / MIB:.0f} MiB of page cache, 32 allowed")
    assert cache <= 34 * MIB


def test_above_a_watermark_memory_goes_and_below_it_stays(work: Workbench, tmp_path: Path, reclaiming: Path) -> None:
    at = work.make("marked")
    Touching(work, at, COLD, reclaiming / "stream")
    used = int(work.path(at, "memory.current").read_text())
    limit = math.ceil(used * 1.02)
    ring = RealRing(work, tmp_path, [profile(MemorySection(watermark_percent=80))])
    ring.arrive(adopted("marked", at, memory_limit=str(limit)))
    ring.seconds(60)
    left = int(work.path(at, "memory.current").read_text()) / limit
    print(f"{left:.1%} of the limit left, the mark is at 80 %")
    assert 0.74 <= left <= 0.81


def test_each_container_is_slowed_down_at_its_own_mark(work: Workbench, tmp_path: Path) -> None:
    work.setting(Handle(""), "memory.high")
    pod, inside = work.make("pod"), {name: work.make("pod", name) for name in ("a", "b")}
    limits = {"a": (64, 128), "b": (32, 64)}
    parts = tuple(
        Part(name, build.handle(inside[name].path), build.resources(0, asked * MIB), build.ceiling(None, most * MIB))
        for name, (asked, most) in limits.items()
    )
    ring = RealRing(work, tmp_path, [profile(MemorySection(throttling_percent=50))])
    ring.arrive(adopted("web", pod, memory="96Mi", memory_limit="192Mi", parts=parts))
    ring.seconds(2)
    marks = {name: int(work.path(at, "memory.high").read_text()) / MIB for name, at in inside.items()}
    assert marks == {"a": 96, "b": 48}
    assert int(work.path(pod, "memory.high").read_text()) == 144 * MIB
    assert not ring.kernel.revert().refused()
    assert {work.path(at, "memory.high").read_text() for at in (pod, *inside.values())} == {"max\n"}
    assert (
        knob.part("default", "web", "a")
        in ring.agent.observer.snapshot(ring.now, ring.wall, ring.agent.workloads, {}, {}, {}).groups.by_target
    )
