"""Write the man page from the commands themselves, as docs/cli.md; a wheel brings it to share/man/man1."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
from generate_cli_docs import GROUPS, HEAD, cli

from j10ce import __version__

PAGE = Path(__file__).resolve().parent.parent / "src/j10ce/cli/j10ce-qos.1"
SEE = "\\fBj10ce\\-qos COMMAND \\-\\-help\\fR says the same of one command; the folder docs explains the rest."


def main() -> None:
    PAGE.write_text("\n".join(page()) + "\n")


def page() -> Iterator[str]:
    yield f'.TH J10CE\\-QOS 1 "" "j10ce\\-qos {__version__}" "User Commands"'
    yield from (".SH NAME", "j10ce\\-qos \\- quality of service for Linux workloads")
    yield from (".SH SYNOPSIS", ".B j10ce\\-qos", "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]")
    yield from (".SH DESCRIPTION", roff(inspect.cleandoc(cli.help or "").partition("\b")[0].strip()))
    root = click.Context(cli, info_name="j10ce-qos")
    yield from options(cli, root)
    for title, names in GROUPS.items():
        yield f".SH {roff(title.upper())}"
        for name in names:
            command = cli.get_command(root, name)
            if command is not None:
                yield from section(command, click.Context(command, info_name=name, parent=root))
    for title, heading in (("EXIT STATUS", "Exit codes"), ("ENVIRONMENT", "Environment")):
        yield from (f".SH {title}", *table(heading))
    yield from (".SH SEE ALSO", SEE)


def section(command: click.Command, ctx: click.Context) -> Iterator[str]:
    yield f".SS {roff(command.get_usage(ctx).removeprefix('Usage: '))}"
    text, _, example = inspect.cleandoc(command.help or "").partition("\b\nExample:\n")
    yield roff(text.strip())
    yield from options(command, ctx)
    if example.strip():
        yield from (".PP", "Example:", ".PP", ".nf", ".RS", roff(inspect.cleandoc(example), filled=False), ".RE", ".fi")
    if isinstance(command, click.Group) and command is not cli:
        for name, inner in command.commands.items():
            yield from section(inner, click.Context(inner, info_name=name, parent=ctx))


def options(command: click.Command, ctx: click.Context) -> Iterator[str]:
    for parameter in command.params:
        record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
        if record:
            yield from (".TP", f".B {roff(record[0])}", roff(record[1]))


def table(heading: str) -> Iterator[str]:
    """The rows and the words behind them of one part of the head of docs/cli.md."""
    part = HEAD.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", part, re.MULTILINE)[1:]
    for left, right in rows:
        yield from (".TP", f".B {roff(left)}", roff(right))
    if rest := re.sub(r"^\|.*\n?", "", part, flags=re.MULTILINE).strip():
        yield from (".PP", roff(rest))


def roff(text: str, *, filled: bool = True) -> str:
    """Plain text as roff: what a terminal would take for a hyphen or a request is neither."""
    plain = re.sub(r"\s*\n\s*\n\s*", "\n.PP\n", text.replace("\\", "\\e").replace("-", "\\-").replace("`", ""))
    lines = (line.strip() if filled else line for line in plain.splitlines())
    return "\n".join(line if line == ".PP" else re.sub(r"^([.'])", r"\\&\1", line) for line in lines)


if __name__ == "__main__":
    main()
