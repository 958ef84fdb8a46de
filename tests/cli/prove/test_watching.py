from __future__ import annotations

import pytest

from j10ce.bench.scenarios import ARMS
from j10ce.cli.prove.watching import LiveBars, ProgressLine
from tests.bench.build import taken


def test_off_a_terminal_each_turn_is_a_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine("cpu")
    line.begin(ARMS[0], 0, 21)
    line.second(ARMS[0], 0, [0.001])
    line.end(ARMS[0], taken(1.8)[0])
    assert capsys.readouterr().err == "cpu 1/21 alone p99 1.80 ms\n"


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_every_second_is_a_bar_that_fits(capsys: pytest.CaptureFixture[str], columns: int) -> None:
    bars = LiveBars(columns)
    bars.begin(ARMS[1], 0, 3)
    for number, latency in enumerate((0.0001, 0.002, 1.5, 60.0)):
        bars.second(ARMS[1], number, [latency] * 100)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= max(columns, 40)
    lengths = [line.count("█") for line in lines[1:]]
    assert lengths == sorted(lengths)
    assert lengths[-1] > lengths[0]
