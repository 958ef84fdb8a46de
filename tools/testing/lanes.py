"""Run suites in lanes. A few failures are tried once more, alone on the machine: what passes then depends on load or on
its neighbours, and is named at the end, so that someone mends it; what fails again is a failure."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tools.testing.progress import Progress
from tools.testing.reading import Reading
from tools.testing.suites import Lane, Stage, Suite

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / ".test-logs"
MOST_AGAIN = 8  # more than that is no accident
NOTHING_CHOSEN = 5  # pytest's status when all tests were deselected


class Ending(NamedTuple):
    status: int
    reading: Reading
    took_s: float
    unsteady: tuple[str, ...] = ()


def run(stages: Sequence[Stage], progress: Progress) -> dict[str, Ending]:
    """How each suite ended."""
    endings: dict[str, Ending] = {}
    for stage in stages:
        with ThreadPoolExecutor(len(stage)) as pool:
            for lane, firsts in zip(stage, pool.map(partial(in_turn, progress=progress), stage), strict=True):
                endings |= {suite.name: first for suite, first in zip(lane, firsts, strict=True)}
        for suite in (suite for lane in stage for suite in lane):
            endings[suite.name] = settled(suite, endings[suite.name])
    return endings


def in_turn(lane: Lane, progress: Progress) -> list[Ending]:
    return [first_try(suite, progress) for suite in lane]


def first_try(suite: Suite, progress: Progress) -> Ending:
    LOGS.mkdir(exist_ok=True)
    log(suite).write_text("")
    ending = execute(suite, [*suite.command, *suite.spread, *suite.where], progress.begin(suite.name), progress)
    progress.end(suite.name, ending.took_s, whole=ending.status == 0)
    if ending.status:
        print("\n".join([f"=== {suite.name} failed; all it said: {log(suite)}", *ending.reading.complaint]), flush=True)
    return ending


def settled(suite: Suite, first: Ending) -> Ending:
    names = tuple(dict.fromkeys(first.reading.failed))
    if first.status != 1 or not first.reading.all_named or len(names) > MOST_AGAIN:
        return first
    print(f"{suite.name}: {len(names)} failed; once more, alone", flush=True)
    again = execute(suite, [*suite.command, *names], Reading())
    took_s = first.took_s + again.took_s
    if again.status:
        print("\n".join(again.reading.complaint), flush=True)
        return first._replace(took_s=took_s)
    return Ending(0, first.reading, took_s, names)


def execute(suite: Suite, command: Sequence[str], reading: Reading, progress: Progress | None = None) -> Ending:
    started = time.monotonic()
    environ = {**os.environ, **suite.environ}
    with (
        log(suite).open("a", buffering=1) as kept,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as child,
    ):
        for line in child.stdout or ():
            kept.write(line)
            reading.take(line)
            if progress:
                progress.tell()
    return Ending(child.returncode, reading, time.monotonic() - started)


def log(suite: Suite) -> Path:
    return LOGS / f"{suite.name}.log"
