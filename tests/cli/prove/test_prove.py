"""`prove` on this host: what it refuses, what it yields, and that nothing of it stays, however it ends."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from j10ce.bench.scenarios import ARMS
from j10ce.bench.scratch import PLACE, TOP
from j10ce.bench.stages.link import NEAR, ON
from j10ce.host.mounts import Hierarchies
from tests.cli.session import AS_NOBODY, Session, eventually

LONG_S = 240.0  # for a run on a machine that has other things to do
SHORTEST = ("prove", "--quick", "--yes", "--seconds", "1")
host = pytest.mark.host


@pytest.fixture(autouse=True)
def runs(cli: Session, tmp_path: Path) -> Path:
    """Where the runs of a test keep what they have, so that nobody else's is in the way."""
    folder = tmp_path / "runs"
    cli.environ[PLACE] = str(folder)
    return folder


def left(cli: Session, runs: Path) -> list[str]:
    """What there is of the runs of a test: folders, cgroups, processes."""
    folders = [str(path) for path in runs.iterdir() if path.is_dir()] if runs.is_dir() else []
    mounts = {mount.path for mount in Hierarchies.discover().in_use().values()}
    tops = [f"{TOP}{run.pid}*" for run in cli.started]
    groups = [str(path) for mount in mounts for top in tops for path in Path(mount).glob(top)]
    return folders + groups + [f"{pid} {words}" for pid, words in processes(runs).items()]


def processes(runs: Path) -> dict[int, str]:
    """Those that know the place."""
    known = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{PLACE}={runs}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                known[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return known


def named(runs: Path, word: str) -> list[int]:
    return [pid for pid, words in processes(runs).items() if word in words]


@pytest.mark.skipif(os.geteuid() != 0, reason="Unsupported: only root can become nobody")
def test_without_root_it_says_what_it_needs(cli: Session) -> None:
    words = cli.command("prove")
    ended = subprocess.run([*AS_NOBODY, *words], capture_output=True, text=True, env=cli.environ, cwd="/", check=False)
    assert ended.returncode == 5
    assert "run it as root" in ended.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("prove", "teleportation"), "'teleportation': use one of cpu,", id="a scenario that there is not"),
        pytest.param(("prove", "--rounds", "0"), "1<=x<=99", id="no rounds"),
        pytest.param(("prove", "--output", "/nonexistent"), "does not exist", id="a folder that there is not"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_ones(cli: Session, words: tuple[str, ...], said: str) -> None:
    assert said in cli.fails(2, *words)


@host
def test_figures_are_printed_and_written_and_nothing_stays(cli: Session, tmp_path: Path, runs: Path) -> None:
    run = cli.start(*SHORTEST, "--output", str(tmp_path))
    assert eventually(lambda: run.poll() is not None, LONG_S)
    assert run.returncode == 0, cli.output(run)
    (proof,) = json.loads((tmp_path / "prove.json").read_text())
    arms = {line["arm"]: line for line in proof["lines"]}
    assert {*arms} == {"no QoS", "ls"}
    assert all(line["p50"] <= line["p99"] <= line["p999"] for line in arms.values())
    assert "no QoS" in cli.output(run)
    assert "<svg" in (tmp_path / "prove.html").read_text()
    assert eventually(lambda: not left(cli, runs)), left(cli, runs)


@host
@pytest.mark.slow
def test_every_arm_has_figures_or_says_why_not(cli: Session, tmp_path: Path, runs: Path) -> None:
    run = cli.start("prove", "--yes", "--rounds", "1", "--seconds", "1", "--output", str(tmp_path))
    assert eventually(lambda: run.poll() is not None, LONG_S)
    assert run.returncode == 0, cli.output(run)
    (proof,) = json.loads((tmp_path / "prove.json").read_text())
    shown = [*(line["arm"] for line in proof["lines"]), *(missing["name"] for missing in proof["missing"])]
    assert sorted(shown) == sorted(arm.name for arm in ARMS)
    assert eventually(lambda: not left(cli, runs)), left(cli, runs)


@host
@pytest.mark.parametrize("scenario", ["cpu", "network", "disk"])
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill -9"])
def test_nothing_stays_of_a_run_that_is_stopped_at_any_second(
    cli: Session, tmp_path: Path, runs: Path, stop: int, scenario: str
) -> None:
    chance = random.Random(f"{stop} {scenario}")
    for _ in range(2):
        run = cli.start(*SHORTEST, scenario, "--output", str(tmp_path), start_new_session=True)
        assert eventually(lambda: named(runs, "janitor") or run.poll() is not None)  # noqa: B023
        assert not eventually(lambda: run.poll() is not None, chance.uniform(0.0, 8.0)) or run.returncode == 0  # noqa: B023
        os.killpg(run.pid, stop) if stop == signal.SIGINT else run.send_signal(stop)
        run.wait(LONG_S)
        assert eventually(lambda: not left(cli, runs), LONG_S), left(cli, runs)
    assert not list(tmp_path.glob("prove*"))
    assert not {NEAR, ON} & {name for _, name in socket.if_nameindex()}


@host
def test_what_nobody_could_clean_up_goes_with_the_next_run(cli: Session, tmp_path: Path, runs: Path) -> None:
    run = cli.start(*SHORTEST, "--output", str(tmp_path), start_new_session=True)
    assert eventually(lambda: named(runs, "antagonist"))
    for pid in (*named(runs, "janitor"), run.pid):
        os.kill(pid, signal.SIGKILL)
    run.wait(LONG_S)
    assert eventually(lambda: not processes(runs))
    again = cli.start(*SHORTEST, "--output", str(tmp_path))
    assert eventually(lambda: again.poll() is not None, LONG_S)
    assert again.returncode == 0, cli.output(again)
    assert eventually(lambda: not left(cli, runs)), left(cli, runs)


@host
def test_a_full_disk_is_said_before_anything_is_measured(cli: Session, tmp_path: Path, runs: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", full], check=True)
    try:
        said = cli.fails(1, *SHORTEST, "--output", str(full))
    finally:
        subprocess.run(["umount", full], check=True)
    assert "No space left on device; --output names another folder" in said
    assert not runs.exists()


@host
def test_a_busy_machine_is_left_alone_unless_somebody_says_otherwise(cli: Session, tmp_path: Path) -> None:
    spinners = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"], text=True) for _ in range(2)]
    cli.started += spinners
    said = cli.fails(7, "prove", "--output", str(tmp_path), stdin=subprocess.DEVNULL)
    assert "busy with other work" in said
    assert "--yes goes on" in said
