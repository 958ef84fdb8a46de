"""plugins: what is built in, and what other distributions add."""

from __future__ import annotations

from importlib.metadata import entry_points

import click

from j10ce.cli.output import dump, say, table
from j10ce.cli.peers import output_option
from j10ce.control.builtin import BUILTIN

SEAMS = {"j10ce.controllers": "controller", "j10ce.sensors": "sensor", "j10ce.backends": "back end"}


@click.command("plugins")
@output_option
def plugins_command(output: str) -> None:
    """List controllers, sensors and back ends: what is built in, and what other distributions add.

    \b
    Example:
      j10ce-qos plugins
    """
    rows = [(name, "controller", "built in") for name in BUILTIN]
    for group, kind in SEAMS.items():
        for point in entry_points(group=group):
            dist = point.dist
            rows.append((point.name, kind, f"{dist.name} {dist.version}" if dist else point.value))
    if output in ("json", "yaml"):
        say(dump([dict(zip(("name", "kind", "from"), r, strict=True)) for r in rows], output))
    else:
        say(table(["NAME", "KIND", "FROM"], rows))
