"""Memory floors on a real cgroup v2 kernel, beside limits, other hands, and pages that are charged elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.session import Running, cgroup, eventually
from tests.enforce.product import Product
from tests.enforce.workbench import MIB, PATIENCE_S, WORKING_SET, stat

IDLE = ("sleep", "1000")
PYTHON = (sys.executable, "-I", "-S", "-c")
READ = "import os, sys\nf = os.open(sys.argv[1], os.O_RDONLY)\nwhile os.read(f, 1 << 18): pass\n"
KEEP = f"{READ}import time; time.sleep(1000)"
GROW = """
import mmap, sys
m = mmap.mmap(-1, int(sys.argv[1]))
for i in range(0, len(m), 4096): m[i] = 1
print("it has all that it wants", flush=True)
import time; time.sleep(1000)
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, clone: Path) -> Iterator[Product]:
    """One agent, started by the first `run`, that lives as long as the module."""
    one = Product(tmp_path_factory.mktemp("host"), f"j10cetest-memory-{os.getpid()}", clone)
    if not one.v2:
        pytest.skip("Unsupported: memory.min needs the memory controller on cgroup v2")
    one.launch("keeper", "--", *IDLE)
    yield one
    one.clean()


def minimum(path: str) -> int:
    return int((cgroup("memory", path) / "memory.min").read_text())


def resident(path: str) -> int:
    return stat(cgroup("memory", path) / "memory.stat")["file"]


def reads_and_stays(host: Product, name: str, file: Path, *promise: str) -> str:
    """A command that has read a file, and goes on; its cgroup."""
    path = host.launch(name, *promise, "--", *PYTHON, KEEP, str(file))
    assert eventually(lambda: resident(path) > 0.9 * WORKING_SET, PATIENCE_S)
    return path


def machine() -> int:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(fields["MemTotal"].split()[0]) << 10


def all_but(left: int) -> int:
    """What may be promised of the machine's memory, but for so much, in whole MiB."""
    return (machine() - max(512 * MIB, machine() // 20) - left) // MIB * MIB


def test_a_floor_that_was_admitted_is_kept_whole_beside_the_agent(host: Product) -> None:
    """All that may be promised, but for what the agent itself uses: it was once cut by 64 MiB for the agent."""
    floor = all_but(24 * MIB)
    path = host.launch("all", "--profile", "ls", "--min-memory", str(floor), "--", *IDLE)
    host.tick(3)
    own = minimum(f"{host.top}/agent")
    print(f"{floor >> 20}Mi are promised, and the agent keeps {own >> 20}Mi")
    assert minimum(path) == floor
    assert 0 < own < 24 * MIB
    assert minimum(host.top) == floor + own
    assert "the floor holds" in host.says("explain", "all")
    host.end("all")


def test_best_effort_is_slowed_down_before_it_takes_what_others_are_promised(host: Product) -> None:
    promised = all_but(128 * MIB)
    host.launch("web", "--profile", "ls", "--min-memory", str(promised), "--", *IDLE)
    host.launch("asleep", "--profile", "be", "--", *IDLE)
    host.tick()
    group = cgroup("memory", f"{host.top}_besteffort")
    wanted = machine() - promised
    assert int((group / "memory.high").read_text()) < wanted
    host.launch("hog", "--profile", "be", "--", *PYTHON, GROW, str(wanted))
    hog = host.started[-1]
    assert eventually(
        lambda: stat(group / "memory.events")["high"] or "all that it wants" in host.output(hog), PATIENCE_S
    )
    host.tick(3)
    used, events = int((group / "memory.current").read_text()), stat(group / "memory.events")
    print(f"best effort has {used >> 20}Mi of the {wanted >> 20}Mi that it wants: {events}")
    assert "all that it wants" not in host.output(hog)
    assert used < wanted
    assert (events["oom_kill"], hog.poll()) == (0, None)
    host.end("web", "asleep", "hog")


def test_a_limit_on_our_group_cuts_no_floor_and_keeps_the_working_set(host: Product, disk: Path) -> None:
    """The kernel goes by the floors inside as they are, and so do we."""
    Path("/proc/sys/vm/drop_caches").write_text("3")
    web = reads_and_stays(host, "web", disk / "working-set", "--min-memory", "32Mi")
    # In another tier: what nobody in a tier claims and uses protects whoever else is in it, the stream included.
    idle = host.launch("asleep", "--profile", "ls", "--min-memory", "64Mi", "--", *IDLE)
    top = cgroup("memory", host.top)
    before = resident(web)
    (top / "memory.max").write_text(str(int((top / "memory.current").read_text()) + 24 * MIB))
    host.tick()
    host("run", "--", *PYTHON, READ, str(disk / "stream"))
    kept = resident(web) / before
    (top / "memory.max").write_text("max")
    print(f"kept {kept:.0%} below a limit on the group above")
    assert (minimum(web), minimum(idle)) == (32 * MIB, 64 * MIB)
    assert kept > 0.9
    host.end("web", "asleep")


def test_a_parent_that_loses_its_cover_has_it_back_at_the_next_tick(host: Product) -> None:
    parent = f"{host.top}-uncovered"
    host.theirs(f"{parent}/db")
    host.adopt(f"{parent}/db", "db", "--min-memory", "96Mi")
    host.tick()
    assert minimum(parent) == 96 * MIB
    (cgroup("memory", parent) / "memory.min").write_text("0")
    host.tick()
    assert minimum(parent) == 96 * MIB
    assert "the floor holds" in host.says("explain", "db")
    host("forget", "db")


def test_pages_that_another_cgroup_read_first_are_not_said_to_be_protected(host: Product, disk: Path) -> None:
    """The floor is so large that the few MiB which the kernel charges to the group above are no part of it to tell."""
    Path("/proc/sys/vm/drop_caches").write_text("3")
    other = reads_and_stays(host, "reader", disk / "working-set")
    late = host.launch("late", "--min-memory", "192Mi", "--", *PYTHON, KEEP, str(disk / "working-set"))
    assert eventually(lambda: "now 0 of" not in host.json("explain", "late")["protected"], PATIENCE_S)
    explanation = host.json("explain", "late")
    assert resident(other) > 0.9 * WORKING_SET
    assert resident(late) < WORKING_SET / 2
    assert explanation["effective"] == "the floor holds"
    assert " of 192Mi; " in explanation["protected"]
    assert f"now {WORKING_SET >> 20}" not in explanation["protected"]
    host.end("reader", "late")


def test_pages_from_before_the_controller_was_enabled_are_named(host: Product, disk: Path) -> None:
    """A parent that does not pass the memory controller on: what its child has read is charged to the parent."""
    Path("/proc/sys/vm/drop_caches").write_text("3")
    parent = cgroup("memory", f"{host.top}-late")
    (parent / "db").mkdir(parents=True)
    host.made.append(parent)
    enter = f"open({str(parent / 'db' / 'cgroup.procs')!r}, 'w').write('0')\n"
    host.started.append(Running([*PYTHON, enter + KEEP, str(disk / "working-set")], text=True))
    assert eventually(lambda: stat(parent / "memory.stat")["file"] > 0.9 * WORKING_SET, PATIENCE_S)
    host.adopt(f"{parent.name}/db", "db", "--min-memory", "96Mi")
    reason = f"are charged to group/{parent.name} itself, from before memory was counted apart inside it"
    assert eventually(lambda: reason in host.says("explain", "db"), PATIENCE_S), host.says("explain", "db")
    host("forget", "db")
