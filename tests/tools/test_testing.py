"""What the runner of `make test` says of suites that pass, fail, are unsteady, or leave tests out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tools.testing import lanes, suites, table
from tools.testing.lanes import Ending
from tools.testing.progress import Progress
from tools.testing.reading import Reading
from tools.testing.suites import Suite

PASSES = "def test_one(): pass\n"
FAILS = "def test_one(): pass\ndef test_two(): assert 'rock' == 'sand'\n"
UNSTEADY = """
from pathlib import Path
def test_one(): pass
def test_two():
    tried = Path(__file__).with_suffix(".tried")
    if not tried.exists():
        tried.touch()
        assert False
"""
LEAVES_OUT = """
import pytest
@pytest.mark.parametrize("n", range(3))
def test_one(n): pytest.skip("Unsupported: changing kernel settings needs root")
def test_two(): pass
"""


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of its own; its tests are run as those of the repository are."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").touch()
    monkeypatch.setattr(lanes, "ROOT", tmp_path)
    monkeypatch.setattr(lanes, "LOGS", tmp_path / ".test-logs")
    return tmp_path


def suite(box: Path, name: str, text: str) -> Suite:
    file = box / f"tests/test_{name}.py"
    file.write_text(text)
    return Suite(name, f"the {name}", 60, (sys.executable, "-m", "pytest", "-v", "-ra"), (f"tests/{file.name}",))


def run(box: Path, *lane: Suite) -> dict[str, Ending]:
    stages = [[[one] for one in lane]]
    return lanes.run(stages, Progress(stages, box / "durations.json"))


def closing(endings: dict[str, Ending]) -> str:
    return "\n".join(table.lines("test", endings))


def test_what_passes_at_the_second_try_is_ok_and_named(box: Path) -> None:
    said = closing(run(box, suite(box, "shaky", UNSTEADY)))
    assert "ok   shaky" in said
    assert "1 passed, 1 passed at the second try" in said
    assert "unsteady in shaky: tests/test_shaky.py::test_two" in said
    assert "failed" not in said


def test_what_fails_twice_is_a_failure_shown_with_its_reason(box: Path, capsys: pytest.CaptureFixture[str]) -> None:
    endings = run(box, suite(box, "broken", FAILS), suite(box, "whole", PASSES))
    assert (endings["broken"].status, endings["whole"].status) == (1, 0)
    assert "FAIL broken" in closing(endings)
    assert "1 failed, 1 passed" in closing(endings)
    shown = capsys.readouterr().out
    assert "assert 'rock' == 'sand'" in shown
    assert "test_whole" not in shown
    assert "test session starts" not in shown


def test_a_suite_that_cannot_begin_is_a_failure_that_shows_what_it_said(
    box: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ending = run(box, suite(box, "odd", "import nothing_of_that_name\n"))["odd"]
    assert ending.status != 0
    assert "nothing_of_that_name" in capsys.readouterr().out


def test_what_was_left_out_is_counted_by_its_reason(box: Path) -> None:
    said = closing(run(box, suite(box, "host", LEAVES_OUT)))
    assert "1 passed, 3 left out" in said
    assert "left out: 3 × changing kernel settings needs root" in said


def test_the_end_says_what_the_next_verb_adds() -> None:
    *_, last = table.lines("test", {})
    assert last.startswith("`make test-all` adds: cgroup v2 in a virtual machine; ")
    assert all(one.holds in last for one in suites.suites_of(suites.VERBS["test-all"]))


def test_time_left_is_what_the_last_run_took_less_what_is_done(tmp_path: Path) -> None:
    quick, host, alone = (Suite(name, name, 600, ()) for name in ("quick", "host", "alone"))
    file = tmp_path / "durations.json"
    file.write_text(json.dumps({"host": 1200}))
    progress = Progress([[[quick], [host]], [[alone]]], file)
    assert progress.line().endswith("about 30 min left"), "the longer lane, and the stage after it"
    progress.begin("quick")
    host_reading = progress.begin("host")
    host_reading.take("tests/a/test_b.py::test_c[d e] FAILED        [ 25%]")
    host_reading.take("[gw1] [ 50%] PASSED tests/a/test_b.py::test_e ")
    assert progress.line() == "stage 1 of 2  quick 0 % · host 50 % (1 failed)  about 20 min left"
    progress.end("quick", 30.0, whole=True)
    progress.end("host", 600.0, whole=False)
    progress.begin("alone").take("tests/a/test_b.py::test_f SKIPPED (Unsupp...)   [ 99%]")
    assert progress.line() == "stage 2 of 2  alone 99 %  less than a minute left"
    assert json.loads(file.read_text()) == {"host": 1200, "quick": 30}, "what failed may have ended early"


def test_a_summary_is_read_in_every_form() -> None:
    for line in (
        "3 failed, 2 passed in 1.20s",
        "==== 3 failed, 2 passed in 75.10s (0:01:15) ====",
        "3 failed, 2 passed in 1.20s\n",
    ):
        reading = Reading()
        reading.take(line)
        assert reading.counts == {"failed": 3, "passed": 2}


def test_a_suite_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(SystemExit, match="no suite is called gast; there are quick, host, shares"):
        suites.chosen("test", ["gast"])


def test_named_suites_keep_their_order_and_company() -> None:
    assert [
        [[one.name for one in lane] for lane in stage] for stage in suites.chosen("test-all", ["kube", "guest-v2"])
    ] == [[["guest-v2"], ["kube"]]]


def test_every_suite_has_a_name_of_its_own() -> None:
    names = [one.name for stages in suites.VERBS.values() for one in suites.suites_of(stages)]
    assert len(names) == len({*names})
