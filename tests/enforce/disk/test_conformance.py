"""The real controller of disks passes the suite that the fake one passes, on a loop device."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.host.mounts import IO
from j10ce.kernel.disk.controller import IoController
from j10ce.kernel.disk.cost import CostFiles
from j10ce.kernel.disk.files import DiskFiles
from j10ce.model.knob import group
from j10ce.model.plan import Applied
from j10ce.testing.conformance_disks import DiskBench, DiskConformance
from tests.enforce.disk.loop import Loop, loop
from tests.enforce.workbench import MIB, Workbench, done

SIZE = 64 * MIB
READ = """
import mmap, os, sys, time
fd, page = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 1 << 20)
start = time.monotonic()
for at in range(int(sys.argv[2])):
    os.preadv(fd, [page], at << 20)
print(time.monotonic() - start, flush=True)
"""


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Loop]:
    with loop(tmp_path / "image", SIZE) as made:
        yield made


@pytest.fixture
def bench(work: Workbench, device: Loop) -> DiskBench:
    at = work.make("child")
    for above in ("", work.top):
        done(work.tree.enable(group(above), frozenset({IO})))
    io = IoController(work.hierarchies)
    return DiskBench(DiskFiles(io), CostFiles(io), at.path, device.number)


class TestRealDisks(DiskConformance):
    @pytest.fixture
    def bench(self, bench: DiskBench) -> DiskBench:
        return bench


def read_s(work: Workbench, path: str, device: Loop, mib: int) -> float:
    """How long a process in the cgroup takes to read so much, past the page cache."""
    files = [work.hierarchies.file(c, path, "cgroup.procs") for c in work.hierarchies.in_use()]
    enter = "".join(f"open({f!r}, 'w').write('0')\n" for f in files)
    command = [sys.executable, "-I", "-S", "-c", enter + READ, device.device, str(mib)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(ended.stdout)


def test_a_cap_is_what_the_kernel_lets_through(work: Workbench, bench: DiskBench, device: Loop) -> None:
    """8 MiB at 4 MiB/s take at least some 2 s less what the kernel lets through at once."""
    setting = bench.setting("io.max.rbps")
    assert bench.files.write(setting, float(4 * MIB), bench.at) == Applied(float(4 * MIB))
    assert read_s(work, bench.path, device, 8) >= 1.0
