"""Break one line at a time, where a wrong one would hurt, and see whether the tests of its package notice.

The mutants are data, tools/mutants/<package>.toml: a file below src/j10ce, a text that stands there once, what takes
its place, the tests that must catch it (and their `marker`, where the quick tests leave them out), and what it would
do to a user. Each is tried in a copy of the sources, two at a time. `mutants.py [package | number | words of the
harm]...` tries some of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tools/mutants"
PACKAGES = ("plan", "policy", "control", "kernel", "store", "manager")
AT_ONCE = 2
LONGEST_S = 300.0  # a suite that takes so long says nothing: perhaps the machine is busy
PYTEST = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider"]
COPIED = ("src", "tests", "config", "deploy", "docs", "examples", "tools")
NOT_COPIED = shutil.ignore_patterns("__pycache__")
CAUGHT, SURVIVED, STALE, UNTRIED, BROKEN = "caught", "SURVIVED", "STALE", "UNTRIED", "BROKEN"
UNENDED = "UNENDED"
NO_TEST_RAN = "none of its tests ran: all are skipped, or left out because the row names no `marker`"


class Mutant(NamedTuple):
    package: str
    file: str  # below src/j10ce
    before: str
    after: str
    tests: tuple[str, ...]
    harm: str
    marker: str = ""  # of its tests, where the quick tests leave them out

    @property
    def path(self) -> str:
        return f"src/j10ce/{self.file}"

    def occurrences(self, root: Path = ROOT) -> int:
        return (root / self.path).read_text().count(self.before)


class Ending(NamedTuple):
    number: int
    mutant: Mutant
    verdict: str
    took_s: float
    tail: str = ""  # the last lines of the tests where they did not catch it


def load(table: Path = TABLE) -> list[Mutant]:
    """All, package by package."""
    collected = []
    for package in PACKAGES:
        body = tomllib.loads((table / f"{package}.toml").read_text())
        suites = body["tests"]
        for row in body["mutant"]:
            tests = tuple(f"tests/{name}" for name in row.get("tests", suites))
            file, marker = f"{package}/{row['file']}", row.get("marker", "")
            collected.append(Mutant(package, file, row["before"], row["after"], tests, row["harm"], marker))
    return collected


def main(chosen: Sequence[str]) -> int:
    mutants = [(n, m) for n, m in enumerate(load(), 1) if _is_chosen(n, m, chosen)]
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        copies = [_copy(Path(scratch) / str(n)) for n in range(AT_ONCE)]
        if not _passes_unchanged(copies[0], [m for _, m in mutants]):
            return 2
        endings = sorted(_try_all(mutants, copies))
    for ending in endings:
        if ending.verdict != CAUGHT:
            m = ending.mutant
            print(f"\n{ending.verdict} {ending.number}: {m.path}: {m.harm}\n- {m.before}\n+ {m.after}\n{ending.tail}")
    _print_table(endings)
    return int(any(ending.verdict != CAUGHT for ending in endings))


def _is_chosen(number: int, m: Mutant, chosen: Sequence[str]) -> bool:
    return not chosen or any(c in (m.package, m.file, str(number)) or (" " in c and c in m.harm) for c in chosen)


def _copy(to: Path) -> Path:
    for name in COPIED:
        shutil.copytree(ROOT / name, to / name, ignore=NOT_COPIED)
    for file in ("pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / file, to / file)
    # Compiled once, and checked by content: a file that changes twice within a second would pass for unchanged.
    compile_ = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src", "tests"]
    subprocess.run(compile_, cwd=to, check=True)
    return to


def _passes_unchanged(copy: Path, mutants: Sequence[Mutant]) -> bool:
    """Tests that fail anyway catch nothing."""
    print(f"{len(mutants)} mutants; first their tests without any mutant", flush=True)
    for marker in sorted({m.marker for m in mutants}):
        tests = sorted({test for m in mutants if m.marker == marker for test in m.tests})
        ended = _run(copy, marker, [f"-n{AT_ONCE}", *tests], LONGEST_S * 4)
        if (verdict := _verdict(ended)) != SURVIVED:
            problem = NO_TEST_RAN if verdict == UNTRIED else "the tests fail without any mutant"
            print(f"{problem}:\n{ended.stdout[-3000:]}")
            return False
    return True


def _try_all(mutants: Sequence[tuple[int, Mutant]], copies: Sequence[Path]) -> Iterator[Ending]:
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)
    began = time.monotonic()
    with ThreadPoolExecutor(len(copies)) as pool:
        tried = [pool.submit(_try_in_turn, n, m, free) for n, m in mutants]
        for done, future in enumerate(as_completed(tried), 1):
            ending = future.result()
            left_min = (time.monotonic() - began) / done * (len(mutants) - done) / 60
            message = f"{done} of {len(mutants)}, about {left_min:.0f} min left"
            where = f"{ending.number} {ending.mutant.file}: {ending.mutant.harm}"
            print(f"{message}: {ending.verdict} in {ending.took_s:.0f} s: {where}", flush=True)
            yield ending


def _try_in_turn(number: int, m: Mutant, free: SimpleQueue[Path]) -> Ending:
    copy = free.get()
    try:
        return _try(number, m, copy)
    finally:
        free.put(copy)


def _try(number: int, m: Mutant, copy: Path) -> Ending:
    file, began = copy / m.path, time.monotonic()
    if m.occurrences(copy) != 1 or m.before == m.after:
        return Ending(number, m, STALE, 0.0, "the line is no longer there, or not only there")
    sound = file.read_text()
    file.write_text(sound.replace(m.before, m.after))
    try:
        ended = _run(copy, m.marker, m.tests, LONGEST_S)
        verdict = _verdict(ended)
        said = "" if verdict == CAUGHT else ended.stdout[-1500:]
        tail = f"{NO_TEST_RAN}:\n{said}" if verdict == UNTRIED else said
        return Ending(number, m, verdict, time.monotonic() - began, tail)
    except subprocess.TimeoutExpired:
        late = f"its tests did not end within {LONGEST_S:g} s: have one of them fail at once"
        return Ending(number, m, UNENDED, time.monotonic() - began, late)
    finally:
        file.write_text(sound)


def _verdict(ended: subprocess.CompletedProcess[str]) -> str:
    """A test that failed caught it. What cannot be imported is no mutant, and tests that did not run say nothing."""
    if ended.returncode == pytest.ExitCode.TESTS_FAILED:
        return CAUGHT
    if ended.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
        return UNTRIED
    if ended.returncode == pytest.ExitCode.OK:
        return SURVIVED if " passed" in ended.stdout.splitlines()[-1] else UNTRIED  # all of them skipped
    return BROKEN


def _run(copy: Path, marker: str, tests: Sequence[str], longest_s: float) -> subprocess.CompletedProcess[str]:
    """Always the same examples of properties, and the first that fails is not made smaller."""
    environment = os.environ | {
        "PYTHONPATH": str(copy / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "J10CE_EXAMPLES": "first",
    }
    return subprocess.run(
        [*PYTEST, *(("-m", marker) if marker else ()), *tests],
        cwd=copy,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=longest_s,
        check=False,
    )


def _print_table(endings: Sequence[Ending]) -> None:
    print("\n| package | mutants | caught | not caught |\n|---|---|---|---|")
    for package in (*PACKAGES, "all"):
        rows = [e for e in endings if package in (e.mutant.package, "all")]
        missed = [f"{e.number} {e.verdict}" for e in rows if e.verdict != CAUGHT]
        if rows:
            print(f"| {package} | {len(rows)} | {len(rows) - len(missed)} | {', '.join(missed)} |")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
