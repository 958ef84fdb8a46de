"""Triggers: polled where the kernel takes none, and a real spike that wakes an event loop."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.host.files import Files
from j10ce.host.handles import Layout
from j10ce.host.mounts import UNIFIED, Hierarchies
from j10ce.observe.sensors.psi import Mode, Triggers, worth_watching
from j10ce.testing.cgroup_tree import cgroup_tree

SPIN = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"


@pytest.fixture
def triggers() -> Iterator[Triggers]:
    made = Triggers()
    yield made
    made.close()


@pytest.mark.parametrize("error", [errno.EACCES, errno.EROFS], ids=errno.errorcode.get)
def test_a_file_that_nobody_may_write_is_done_without(
    triggers: Triggers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    """Root may open anything, so the refusal is made here."""
    file = tmp_path / "cpu.pressure"
    file.write_text("some avg10=99.00 avg60=0.00 avg300=0.00 total=9000000\n")

    def refuse(*_: object) -> int:
        raise OSError(error, "not yours")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert triggers.watch(str(file)) == "none"
    assert triggers.follow([str(file)]) == {}  # not tried again and again


def test_a_file_that_takes_no_trigger_is_done_without(triggers: Triggers, tmp_path: Path) -> None:
    file = tmp_path / "cpu.pressure"
    file.write_text("some total=0\n")
    assert triggers.watch(str(file)) == "none"


def test_a_file_that_is_not_there_is_absent(triggers: Triggers, tmp_path: Path) -> None:
    assert triggers.watch(str(tmp_path / "none")) == "absent"


def test_only_pressure_that_means_trouble_is_watched(tmp_path: Path) -> None:
    hierarchies = cgroup_tree(tmp_path, {})
    own = ["j10ce", "j10ce/sensitive", "j10ce_besteffort"]
    watched = worth_watching(Layout(hierarchies, Files(), "j10ce"), own)
    assert {f.removeprefix(f"{tmp_path}/unified/") for f in watched} == {
        "/proc/pressure/memory",
        "/proc/pressure/io",
        "j10ce/memory.pressure",
        "j10ce/sensitive/memory.pressure",
        "j10ce/sensitive/cpu.pressure",
        "j10ce_besteffort/memory.pressure",
    }


def test_following_watches_what_is_new_and_drops_the_rest(triggers: Triggers, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("some total=0\n")
    other.write_text("some total=0\n")
    assert triggers.follow([str(one)]) == {str(one): "none"}
    assert triggers.follow([str(one), str(other)]) == {str(other): "none"}
    assert triggers.follow([str(other)]) == {}
    assert triggers.follow([str(one)]) == {str(one): "none"}


def triggered(mode: Mode) -> None:
    if mode not in ("1s", "2s"):
        pytest.skip(f"Unsupported: PSI triggers; the kernel answers {mode}")


@pytest.mark.host
async def test_a_real_spike_wakes_the_event_loop(
    triggers: Triggers, own_tree: tuple[Hierarchies, str], python: str
) -> None:
    hierarchies, path = own_tree
    if hierarchies.unified is None:
        pytest.skip("Unsupported: pressure of one cgroup needs a cgroup2 mount")
    group = Path(hierarchies.directory(UNIFIED, path))
    triggered(triggers.watch(str(group / "cpu.pressure")))
    woken = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(triggers.fileno(), lambda: (triggers.drain(), woken.set()))
    spinners = [subprocess.Popen([python, "-S", "-c", SPIN]) for _ in range(2)]
    try:
        for spinner in spinners:
            (group / "cgroup.procs").write_text(str(spinner.pid))
        await asyncio.wait_for(woken.wait(), 30)
    finally:
        loop.remove_reader(triggers.fileno())
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


@pytest.mark.host
def test_a_trigger_whose_cgroup_is_gone_does_not_stay_readable(
    triggers: Triggers, own_tree: tuple[Hierarchies, str]
) -> None:
    hierarchies, path = own_tree
    if hierarchies.unified is None:
        pytest.skip("Unsupported: pressure of one cgroup needs a cgroup2 mount")
    group = Path(hierarchies.directory(UNIFIED, path))
    triggered(triggers.watch(str(group / "memory.pressure")))
    group.rmdir()
    ready = select.poll()
    ready.register(triggers.fileno(), select.POLLIN)
    assert ready.poll(5000)
    triggers.drain()
    assert not ready.poll(0)
