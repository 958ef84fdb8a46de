"""plugins: what is built in, and what other distributions add."""

from __future__ import annotations

from importlib.metadata import entry_points

import click

from j10ce.cli.output import dump, say, table
from j10ce.cli.peers import output_option
from j10ce.control.builtin import BUILTIN

GROUPS = ("controllers", "sensors", "backends", "adapters", "stores")


@click.command("plugins")
@output_option
def plugins_command(output: str) -> None:
    """List controllers and other plugins, and where they come from.

    \b
    Example:
      j10ce-qos plugins
    """
    rows = [("controllers", name, "built in") for name in BUILTIN]
    for group in GROUPS:
        for point in entry_points(group=f"j10ce.{group}"):
            dist = point.dist
            rows.append((group, point.name, f"{dist.name} {dist.version}" if dist else point.value))
    if output in ("json", "yaml"):
        say(dump([dict(zip(("seam", "name", "from"), r, strict=True)) for r in rows], output))
    else:
        say(table(["SEAM", "NAME", "FROM"], rows))
