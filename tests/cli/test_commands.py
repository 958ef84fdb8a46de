"""Every command: found, documented, with an example that names real commands and options."""

import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from j10ce.cli.main import COMMANDS, EXIT_CODES, cli, report
from j10ce.cli.peers import find_kind
from j10ce.errors import Busy, Conflict, Denied, Finding, Invalid, NotFound, QosError, Unreachable


def every_command() -> list[tuple[str, click.Command]]:
    ctx = click.Context(cli)
    out: list[tuple[str, click.Command]] = []
    for name in COMMANDS:
        command = cli.get_command(ctx, name)
        assert command is not None, name
        out.append((name, command))
        if isinstance(command, click.Group):
            out += [(f"{name} {sub}", command.commands[sub]) for sub in command.commands]
    return out


@pytest.mark.parametrize(("name", "command"), [pytest.param(n, c, id=n) for n, c in every_command()])
def test_help_has_an_example_that_parses(name: str, command: click.Command) -> None:
    text = CliRunner().invoke(cli, [*name.split(), "--help"]).output
    examples = re.findall(r"^\s+j10ce-qos (.+?)(?:\s+#.*|\s+>.*)?$", text.partition("Example:")[2], re.MULTILINE)
    assert examples, text
    for example in examples:
        words = shlex.split(example)
        leaf: click.Command = cli
        ctx = click.Context(cli)
        while isinstance(leaf, click.Group):
            found = leaf.get_command(ctx, words.pop(0))
            assert found is not None, example
            leaf = found
        ctx = leaf.make_context("x", list(words), resilient_parsing=False)
        assert ctx.params is not None


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Invalid([Finding("spec", 1, "wrong")]), 3),
        (Unreachable("x"), 4),
        (Denied("x"), 5),
        (NotFound("x"), 6),
        (Conflict("x"), 7),
        (Busy("x"), 7),
        (QosError("x"), 1),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: QosError, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(error) == code
    assert capsys.readouterr().err.startswith("error: ")
    assert {c for _, c in EXIT_CODES} == {1, 3, 4, 5, 6, 7}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(shell: str) -> None:
    out = CliRunner().invoke(cli, ["completion", shell])
    assert out.exit_code == 0
    assert "_J10CE_QOS_COMPLETE" in out.output


@pytest.mark.parametrize("text", ["qosprofiles", "QoSProfile", "qp", "QOSPROFILE"])
def test_a_kind_goes_by_any_of_its_names(text: str) -> None:
    assert find_kind(text).name == "QoSProfile"


def test_an_unknown_kind_says_what_there_is() -> None:
    with pytest.raises(Invalid, match="use one of qosprofiles"):
        find_kind("pods")


@pytest.mark.parametrize(
    ("module", "spares"),
    [
        pytest.param("main", ["j10ce.cli.peers", "msgspec", "h11"], id="--help loads no command"),
        pytest.param("place", ["yaml", "http.client", "ssl", "asyncio", "j10ce.agent.loop"], id="run loads the least"),
    ],
)
def test_a_command_loads_only_what_it_needs(module: str, spares: list[str], python: str, clone: Path) -> None:
    code = f"import sys, j10ce.cli.{module}; print(sorted(set({spares!r}) & set(sys.modules)))"
    told = subprocess.run([python, "-c", code], env={"PYTHONPATH": str(clone / "src")}, capture_output=True, check=True)
    assert told.stdout == b"[]\n"


def test_the_help_of_every_command_is_in_the_table_in_one_line() -> None:
    text = CliRunner().invoke(cli, ["--help"], terminal_width=80).output
    for name, (_, does) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(does)}$", text, re.MULTILINE), name
