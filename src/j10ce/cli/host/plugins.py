"""plugins: what is built in, and what other distributions add."""

from __future__ import annotations

from importlib.metadata import entry_points

import click

from j10ce.cli.output import dump, say, table
from j10ce.cli.peers import output_option
from j10ce.control.builtin import BUILTIN


@click.command("plugins")
@output_option
def plugins_command(output: str) -> None:
    """List controllers: what is built in, and what other distributions add.

    \b
    Example:
      j10ce-qos plugins
    """
    rows = [(name, "built in") for name in BUILTIN]
    for point in entry_points(group="j10ce.controllers"):
        dist = point.dist
        rows.append((point.name, f"{dist.name} {dist.version}" if dist else point.value))
    if output in ("json", "yaml"):
        say(dump([dict(zip(("name", "from"), r, strict=True)) for r in rows], output))
    else:
        say(table(["NAME", "FROM"], rows))
