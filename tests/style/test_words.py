"""Log events are noun.verb (rule 40); what is unfinished is an issue, not a mark; names say what they hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.style.sources import CLONE, Source, dotted, everything, product

EVENT = re.compile(r"^[a-z]+\.[a-z_]+$")
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
VAGUE = {"to" + "ld", "fou" + "nd"}  # as names: whatever came back
MARK = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME)\b")


def test_log_events_are_noun_and_verb() -> None:
    odd = [
        f"{source.path}:{call.lineno}"
        for source in product()
        for call in log_calls(source)
        if not EVENT.match(event(call))
    ]
    assert not odd, f"the first argument of a log call is a literal that matches {EVENT.pattern}"


def log_calls(source: Source) -> Iterator[ast.Call]:
    for call in source.calls():
        receiver, _, level = dotted(call.func).rpartition(".")
        if level in LEVELS and receiver.split(".")[-1].strip("_").lower() in ("log", "logger"):
            yield call


def event(call: ast.Call) -> str:
    match call.args:
        case [ast.Constant(value=str(name)), *_]:
            return name
        case _:
            return ""


@pytest.mark.parametrize(
    "code", ['log.info("knob.write", n=1)', 'self.log.error("agent.stop")', 'console.info("free text")']
)
def test_good_events_pass(code: str) -> None:
    assert all(EVENT.match(event(call)) for call in log_calls(Source("", code, ast.parse(code))))


@pytest.mark.parametrize("code", ['log.info("wrote a knob")', 'self._log.error(f"{x}.y")', "logger.debug(name)"])
def test_bad_events_are_found(code: str) -> None:
    assert not any(EVENT.match(event(call)) for call in log_calls(Source("", code, ast.parse(code))))


def test_nothing_is_marked_as_unfinished() -> None:
    texts = {source.path: source.text for source in everything()}
    texts |= {path.relative_to(CLONE).as_posix(): path.read_text() for path in (CLONE / "docs").rglob("*.md")}
    assert not [path for path, text in texts.items() if MARK.search(text)]


def named(source: Source) -> Iterator[str]:
    """Every name that a source gives to something, without underscores around it."""
    for node in source.nodes():
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name.strip("_").lower()
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name.strip("_").lower()


def test_a_name_says_what_it_holds() -> None:
    assert not [f"{source.path}: {name}" for source in everything() for name in named(source) if name in VAGUE]


@pytest.mark.parametrize(
    "code", ["{} = 1", "self._{} = 1", "def f({}): ...", "class C:\n    def {}(self): ...", "({} := 1)"]
)
@pytest.mark.parametrize("name", sorted(VAGUE))
def test_vague_names_are_noticed(code: str, name: str) -> None:
    assert name in named(Source("", "", ast.parse(code.format(name))))


def test_pages_say_who_says_what() -> None:
    pages = [CLONE / "README.md", CLONE / "CHANGELOG.md", CLONE / "CONTRIBUTING.md", *(CLONE / "docs").rglob("*.md")]
    odd = re.compile(r"\bto" + r"ld\b", re.IGNORECASE)
    assert not [page.name for page in pages if odd.search(page.read_text())]
