"""Who is killed first: one number for all processes of a workload, in files like those of /proc, and on this kernel."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.kernel.tasks.oom import FILE, OomScores
from j10ce.model.plan import Refused


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    for task, score in (("self", "0"), ("10", "-998"), ("11", "0")):
        (tmp_path / task).mkdir()
        (tmp_path / task / FILE).write_text(f"{score}\n")
    return tmp_path


def test_every_process_gets_it_and_whoever_is_gone_refuses_nothing(proc: Path) -> None:
    scores = OomScores(str(proc))
    assert scores.support().ok
    assert scores.read([10, 11, 12]) == {10: -998.0, 11: 0.0}
    assert scores.write([10, 11, 12], 500.0) == {}
    assert scores.read([10, 11]) == {10: 500.0, 11: 500.0}


def test_where_proc_is_not_mounted_it_says_so(tmp_path: Path) -> None:
    assert not OomScores(str(tmp_path)).support().ok


@pytest.mark.parametrize(("asked", "held"), [(0.4, 0.0), (2000.0, 1000.0), (-2000.0, -1000.0), (-500.0, -500.0)])
def test_it_is_a_whole_number_within_what_the_kernel_takes(asked: float, held: float) -> None:
    scores = OomScores()
    assert scores.quantise(asked) == held == scores.quantise(held)


def test_a_refusal_names_the_right_that_is_missing(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr("j10ce.kernel.tasks.oom.os.write", refuse)
    (refused,) = OomScores(str(proc)).write([10], -500.0).values()
    assert isinstance(refused, Refused)
    assert "EACCES" in refused.reason
    assert "CAP_SYS_RESOURCE" in refused.reason


@pytest.fixture
def own() -> Iterator[int]:
    """Of this very process, as it was."""
    path = Path("/proc/self", FILE)
    before = path.read_text()
    yield int(before)
    path.write_text(before)


def test_this_kernel_takes_it(own: int) -> None:
    scores, here = OomScores(), os.getpid()
    assert scores.write([here], float(own + 1)) == {}
    assert scores.read([here]) == {here: float(own + 1)}
