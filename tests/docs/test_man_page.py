"""The man page has a section for every command, and none that is gone."""

from __future__ import annotations

import re

from j10ce.cli.main import COMMANDS
from tests.docs.pages import CLONE

PAGE = (CLONE / "src/j10ce/cli/j10ce-qos.1").read_text()


def test_the_man_page_has_every_command() -> None:
    sections = re.findall(r"^\.SS j10ce\\-qos (\w+)", PAGE, re.MULTILINE)
    assert set(sections) == set(COMMANDS), "make generate"


def test_no_line_of_it_is_a_request_by_accident() -> None:
    requests = set(re.findall(r"^\.(\S+)", PAGE, re.MULTILINE))
    assert requests == {"TH", "SH", "SS", "PP", "TP", "B", "nf", "fi", "RS", "RE"}
