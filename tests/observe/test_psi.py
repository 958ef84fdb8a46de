"""Triggers: polled where the kernel takes none, and a real spike that wakes an event loop."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.host.files import Files
from j10ce.host.handles import Layout
from j10ce.host.mounts import UNIFIED, Hierarchies
from j10ce.model.workload import Handle
from j10ce.observe.psi import Mode, Triggers, worth_watching
from j10ce.testing.cgroup_tree import cgroup_tree

SPIN = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"


@pytest.fixture
def triggers() -> Iterator[Triggers]:
    made = Triggers()
    yield made
    made.close()


class Pressure:
    """A pressure file that nobody may write."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def stalled(self, total_us: int) -> None:
        self.path.write_text(f"some avg10=0.00 avg60=0.00 avg300=0.00 total={total_us}\n")


def polled(triggers: Triggers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pressure:
    """Root may open anything, so the refusal is made here."""
    file = Pressure(tmp_path / "cpu.pressure")
    file.stalled(0)

    def refuse(*_: object) -> int:
        raise PermissionError(13, "not yours")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert triggers.watch(str(file.path)) == "polled"
    return file


def test_a_polled_file_spikes_when_the_stall_reaches_its_share(
    triggers: Triggers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = polled(triggers, tmp_path, monkeypatch)
    assert triggers.spiked(10.0) == []
    file.stalled(149_000)
    assert triggers.spiked(11.0) == []
    file.stalled(449_000)
    assert triggers.spiked(13.0) == [str(file.path)]
    assert triggers.spiked(13.0) == []


def test_a_polled_file_that_vanishes_is_let_go(
    triggers: Triggers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = polled(triggers, tmp_path, monkeypatch)
    triggers.spiked(10.0)
    file.path.unlink()
    assert triggers.spiked(11.0) == []
    file.stalled(9_000_000)
    assert triggers.spiked(12.0) == []


def test_a_file_that_is_not_there_is_absent(triggers: Triggers, tmp_path: Path) -> None:
    assert triggers.watch(str(tmp_path / "none")) == "absent"
    assert triggers.spiked(1.0) == []


def test_only_pressure_that_means_trouble_is_watched(tmp_path: Path) -> None:
    hierarchies = cgroup_tree(tmp_path, {})
    own = [Handle("j10ce"), Handle("j10ce/sensitive"), Handle("j10ce_besteffort")]
    found = worth_watching(Layout(hierarchies, Files(), "j10ce"), own)
    assert {f.removeprefix(f"{tmp_path}/unified/") for f in found} == {
        "/proc/pressure/memory",
        "/proc/pressure/io",
        "j10ce/memory.pressure",
        "j10ce/sensitive/memory.pressure",
        "j10ce/sensitive/cpu.pressure",
        "j10ce_besteffort/memory.pressure",
    }


def test_following_watches_what_is_new_and_drops_the_rest(
    triggers: Triggers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(polled(triggers, tmp_path, monkeypatch).path)
    assert triggers.follow([file]) == {}
    assert triggers.follow([str(tmp_path / "none")]) == {str(tmp_path / "none"): "absent"}
    Path(file).write_text("some total=0\n")
    triggers.spiked(1.0)
    Path(file).write_text("some total=9000000\n")
    assert triggers.spiked(2.0) == []


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
