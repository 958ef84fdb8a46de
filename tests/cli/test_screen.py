"""What a terminal shows: lines that fit it, and colours; a pipe gets neither."""

from __future__ import annotations

import io

import pytest

from j10ce.cli.output import Verbatim, dump, say
from j10ce.cli.screen import BOLD, GREEN, PLAIN, RED, coloured, fitted, folded, has_colours

TABLE = "NAME   PHASE     FLOOR\nweb    Running   0/256Mi\ndb     Running   1Gi"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_headings_and_what_is_not_effective_stand_out() -> None:
    heading, web, db = coloured(TABLE).splitlines()
    assert heading == f"{BOLD}NAME   PHASE     FLOOR{PLAIN}"
    assert web == f"web    {GREEN}Running{PLAIN}   {RED}0/256Mi{PLAIN}"
    assert "1Gi" in db.split(PLAIN)[-1]


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_who_wants_no_colours_gets_none(environ: dict[str, str]) -> None:
    assert not has_colours(Terminal(), environ)
    assert has_colours(Terminal(), {"TERM": "xterm"})
    assert not has_colours(io.StringIO(), {"TERM": "xterm"})


def test_a_long_line_goes_on_below_its_last_field() -> None:
    line = "  cpu.weight   56341   floors: floor 500m: 56341 of 57365 shares"
    assert folded(line, 45).splitlines() == [
        "  cpu.weight   56341   floors: floor 500m:",
        "                       56341 of 57365 shares",
    ]
    assert folded(line, 200) == line


@pytest.mark.parametrize("columns", [25, 40, 80])
def test_no_word_is_lost_and_every_line_fits(columns: int) -> None:
    line = "workload/default/web: " + "promised but not kept " * 9
    lines = folded(line, columns).splitlines()
    assert " ".join(lines).split() == line.split()
    assert max(map(len, lines)) <= columns


WIDE = """\
NAME   READY   MEMORY    RESERVED-CPU   HEARTBEAT              AGE
n1     True    23.54Gi   500m           2026-11-18T08:48:01Z   39s
n2     -       -         -              -                      2d"""


def test_a_table_too_wide_goes_on_below_at_the_same_column_in_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert fitted(WIDE, Terminal()) == coloured(WIDE)
    assert _on_a_screen_of(45, WIDE).splitlines() == [
        "NAME   READY   MEMORY    RESERVED-CPU",
        "  HEARTBEAT              AGE",
        "n1     True    23.54Gi   500m",
        "  2026-11-18T08:48:01Z   39s",
        "n2     -       -         -",
        "  -                      2d",
    ]


def test_a_table_too_wide_takes_no_line_in_that_is_none_of_its_rows() -> None:
    after = "a sentence that says what the whole table means"
    assert _on_a_screen_of(45, f"{WIDE}\n{after}").endswith("\na sentence that says what the whole table\nmeans")


@pytest.mark.parametrize("heading", ["NAME     PROFILE   CPU", "  KNOB         VALUE  WHY", "SETTING   WHY IT IS LEFT"])
def test_every_heading_stands_out(heading: str) -> None:
    assert coloured(heading) == f"{BOLD}{heading}{PLAIN}"


def _on_a_screen_of(columns: int, text: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("NO_COLOR", "1")
        return fitted(text, Terminal())


def test_lines_fit_a_terminal_and_have_any_length_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell may export COLUMNS, and whoever reads a pipe goes by lines."""
    long = "word " * 40
    monkeypatch.setenv("COLUMNS", "40")
    assert fitted(long, io.StringIO()) == long
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    assert max(map(len, fitted(long, terminal).splitlines())) <= 40


def test_what_machines_read_is_never_folded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    data = {"message": "word " * 40}
    say(dump(data, "json"))
    say(Verbatim("word " * 40))
    assert max(map(len, capsys.readouterr().out.splitlines())) > 200
