"""The plugin on the page about plugins runs, its tests pass, and the page names every metric there is."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from j10ce.agent.ring.contained import GRACE_S
from j10ce.model.snapshot import METRICS, Snapshot
from tests.docs.pages import CLONE, blocks

PAGE = "docs/writing-a-plugin.md"
TEXT = (CLONE / PAGE).read_text()


def page_tests() -> dict[str, Callable[[], None]]:
    scope: dict[str, Callable[[], None]] = {}
    for block in blocks():
        if block.page == PAGE and block.language == "python":
            exec(compile(block.text, f"{PAGE}:{block.line}", "exec"), scope)
    return {name: test for name, test in scope.items() if name.startswith("test_")}


@pytest.mark.parametrize("test", [pytest.param(test, id=name) for name, test in page_tests().items()])
def test_the_plugin_of_the_page_does_what_its_own_tests_say(test: Callable[[], None]) -> None:
    test()


def test_the_page_has_tests() -> None:
    assert len(page_tests()) == 2


def test_the_page_lists_every_metric() -> None:
    assert dict(re.findall(r"^\| `(\w+\.[\w.]+)` \| (.+) \|$", TEXT, re.MULTILINE)) == METRICS


def test_the_page_lists_everything_that_a_snapshot_has() -> None:
    listed = {name for row in re.findall(r"^\| (`.+?`) \|", TEXT, re.MULTILINE) for name in re.findall(r"`(\w+)", row)}
    assert set(Snapshot.__struct_fields__) <= listed


def test_the_grace_time_is_what_the_page_says() -> None:
    assert f"for {GRACE_S:.0f} seconds" in TEXT
