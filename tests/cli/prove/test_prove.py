"""`prove` on this host: what it refuses, what it yields, and that nothing of it stays, however it ends."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from j10ce.bench.scratch import RUNS, TOP
from j10ce.host.mounts import Hierarchies
from tests.cli.session import AS_NOBODY, Session, eventually

LONG_S = 240.0  # for a run on a machine that has other things to do
SHORTEST = ("prove", "--yes", "--rounds", "1", "--seconds", "1")
host = pytest.mark.host


def left() -> list[str]:
    """What there is of any run: folders, cgroups, processes."""
    folders = [str(path) for path in RUNS.iterdir() if path.is_dir()] if RUNS.is_dir() else []
    mounts = {mount.path for mount in Hierarchies.discover().in_use().values()}
    groups = [str(path) for mount in mounts for path in Path(mount).glob(f"{TOP}*")]
    return folders + groups + processes()


def processes() -> list[str]:
    lines = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if "j10ce.bench." in line]


@pytest.mark.skipif(os.geteuid() != 0, reason="Unsupported: only root can become nobody")
def test_without_root_it_says_what_it_needs(cli: Session) -> None:
    words = cli.command("prove")
    ended = subprocess.run([*AS_NOBODY, *words], capture_output=True, text=True, env=cli.environ, cwd="/", check=False)
    assert ended.returncode == 5
    assert "run it as root" in ended.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("prove", "teleportation"), "'teleportation' is not", id="a scenario that there is not"),
        pytest.param(("prove", "--rounds", "0"), "1<=x<=99", id="no rounds"),
        pytest.param(("prove", "--output", "/nonexistent"), "does not exist", id="a folder that there is not"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_ones(cli: Session, words: tuple[str, ...], said: str) -> None:
    assert said in cli.fails(2, *words)


@host
def test_figures_are_printed_and_written_and_nothing_stays(cli: Session, tmp_path: Path) -> None:
    run = cli.start(*SHORTEST, "--output", str(tmp_path))
    assert eventually(lambda: run.poll() is not None, LONG_S)
    assert run.returncode == 0, cli.output(run)
    (proof,) = json.loads((tmp_path / "prove.json").read_text())
    arms = {line["arm"]: line for line in proof["lines"]}
    assert {"alone", "no QoS", "kubernetes", "koordinator", "ls"} <= {*arms, *(m["name"] for m in proof["missing"])}
    assert all(line["p50"] <= line["p99"] <= line["p999"] for line in arms.values())
    assert "no QoS" in cli.output(run)
    assert "<svg" in (tmp_path / "prove.html").read_text()
    assert eventually(lambda: not left()), left()


@host
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill -9"])
def test_nothing_stays_of_a_run_that_is_stopped_at_any_second(cli: Session, tmp_path: Path, stop: int) -> None:
    chance = random.Random(stop)
    for _ in range(3):
        run = cli.start(*SHORTEST, "--output", str(tmp_path), start_new_session=True)
        assert eventually(lambda: processes() or run.poll() is not None)  # noqa: B023
        assert not eventually(lambda: run.poll() is not None, chance.uniform(0.0, 8.0)) or run.returncode == 0  # noqa: B023
        os.killpg(run.pid, stop) if stop == signal.SIGINT else run.send_signal(stop)
        run.wait(LONG_S)
        assert eventually(lambda: not left(), LONG_S), left()
    assert not list(tmp_path.glob("prove*"))


@host
def test_what_nobody_could_clean_up_goes_with_the_next_run(cli: Session, tmp_path: Path) -> None:
    run = cli.start(*SHORTEST, "--output", str(tmp_path), start_new_session=True)
    assert eventually(lambda: any("antagonist" in line for line in processes()))
    janitors = [int(line.split()[0]) for line in processes() if "janitor" in line]
    for pid in (*janitors, run.pid):
        os.kill(pid, signal.SIGKILL)
    run.wait(LONG_S)
    assert eventually(lambda: not processes())
    again = cli.start(*SHORTEST, "--output", str(tmp_path))
    assert eventually(lambda: again.poll() is not None, LONG_S)
    assert again.returncode == 0, cli.output(again)
    assert eventually(lambda: not left()), left()
