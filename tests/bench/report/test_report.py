from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.bench.report.files import HTML, JSON, refuse_unwritable, write_files
from j10ce.bench.report.page import paged
from j10ce.bench.report.picture import pictured
from j10ce.bench.report.text import bar, drawn
from j10ce.bench.report.words import sentences
from j10ce.errors import QosError
from tests.bench.build import proof, taken, usual

HOSTILE = "<script>alert(1)</script>"


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 100, 200])
def test_text_fits_any_terminal_from_40_columns_on(columns: int) -> None:
    lines = drawn(usual(), columns).split("\n")
    assert max(map(len, lines)) <= max(columns, 40)


@pytest.mark.parametrize("columns", [40, 200])
def test_text_has_every_arm_what_is_missing_and_what_came_out(columns: int) -> None:
    text = " ".join(drawn(usual(), columns).split())
    for words in ("alone", "no QoS", "1,500 ms", "1.90 ms", "Not measured: realtime", "1.06"):
        assert words in text


def test_a_noisy_run_says_so() -> None:
    assert "Too noisy" in drawn(proof({"alone": taken(1.0, 5.0)}), 80)


@given(st.lists(st.floats(0.01, 1e5), min_size=1, max_size=8), st.integers(5, 100))
def test_longer_latencies_have_no_shorter_bars_and_none_is_too_long(values: list[float], width: int) -> None:
    lengths = [len(bar(value, values, width)) for value in sorted(values)]
    assert lengths == sorted(lengths)
    assert lengths[0] >= 1
    assert lengths[-1] <= width


def test_the_picture_is_well_formed_and_the_same_for_the_same_run() -> None:
    assert ET.fromstring(pictured(usual())).tag.endswith("svg")
    assert pictured(usual()) == pictured(usual())


def test_requests_that_were_given_up_are_counted_aloud() -> None:
    given_up = [msgspec.structs.replace(one, unserved=7) for one in taken(9000.0)]
    assert "no QoS: 7 requests were given up" in drawn(proof({"alone": taken(1.0), "no QoS": given_up}), 200)


def test_the_page_loads_nothing_runs_nothing_and_takes_no_markup_from_names() -> None:
    text = paged([msgspec.structs.replace(usual(), machine=HOSTILE, asks=HOSTILE)])
    assert "<script" not in text
    assert "http://www.w3.org/2000/svg" in text
    assert not [word for word in ("src=", "href=", "url(") if word in text]


def test_files_are_whole_and_readable(tmp_path: Path) -> None:
    assert [path.name for path in write_files(tmp_path, [usual()])] == [JSON, HTML]
    assert msgspec.json.decode((tmp_path / JSON).read_bytes())[0]["lines"][0]["arm"] == "alone"
    assert sorted(path.name for path in tmp_path.iterdir()) == [HTML, JSON]
    assert (tmp_path / HTML).stat().st_mode & 0o777 == 0o644


def test_a_folder_that_is_not_there_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(QosError, match="--output names another folder"):
        refuse_unwritable(tmp_path / "gone")


def test_sentences_name_the_best_of_ours() -> None:
    assert any("Best of ours: ls" in sentence for sentence in sentences(usual()))
