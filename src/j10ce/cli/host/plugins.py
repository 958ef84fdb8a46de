"""plugins: what is built in, and what other distributions add."""

from __future__ import annotations

from importlib.metadata import entry_points

import click

from j10ce.cli.output import dump, say, table
from j10ce.cli.peers import output_option
from j10ce.control.builtin import BUILTIN
from j10ce.scheduler.config.names import NAMES

SEAMS = {
    "j10ce.controllers": "controller",
    "j10ce.sensors": "sensor",
    "j10ce.backends": "back end",
    "j10ce.scheduler": "scheduler",
}


@click.command("plugins")
@output_option
def plugins_command(output: str) -> None:
    """List controllers, sensors, back ends and plugins of the scheduler: what is built in, and what others add.

    \b
    Example:
      j10ce-qos plugins
    """
    rows = [(name, "controller", "built in") for name in BUILTIN]
    rows += [(name, "scheduler", "built in") for name in NAMES]
    for group, kind in SEAMS.items():
        for point in entry_points(group=group):
            dist = point.dist
            rows.append((point.name, kind, f"{dist.name} {dist.version}" if dist else point.value))
    if output in ("json", "yaml"):
        say(dump([dict(zip(("name", "kind", "from"), r, strict=True)) for r in rows], output))
    else:
        say(table(["NAME", "KIND", "FROM"], rows))
