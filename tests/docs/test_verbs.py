"""Every `make` that a page names is a verb, and every verb that runs suites names suites that there are."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import CLONE, pages
from tools.testing import suites

MAKEFILE = (CLONE / "Makefile").read_text()
VERBS = set(re.findall(r"^([a-z-]+):.*##", MAKEFILE, re.MULTILINE))
NAMED = {
    (str(page.relative_to(CLONE)), verb)
    for page in pages()
    for verb in re.findall(r"(?:`|^)(?:[A-Z]+=\S+ )?make ([a-z-]+)", page.read_text(), re.MULTILINE)
}


def test_pages_name_verbs_that_there_are() -> None:
    assert len(NAMED) > 20
    assert sorted((page, verb) for page, verb in NAMED if verb not in VERBS) == []


def test_the_help_names_every_verb() -> None:
    phony = {verb for line in re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE) for verb in line.split()}
    assert phony == VERBS


@pytest.mark.parametrize("words", re.findall(r"^\t@\$\(RUN\) (.+)$", MAKEFILE, re.MULTILINE))
def test_a_verb_runs_suites_that_there_are(words: str) -> None:
    verb, *names = words.split()
    assert suites.chosen(verb, names)
