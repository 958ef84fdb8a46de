"""config: check the files under /etc/j10ce-qos before they are loaded."""

from __future__ import annotations

from pathlib import Path

import click

from j10ce.agent.config import config_folder, load
from j10ce.cli.output import dump, say
from j10ce.cli.peers import Subcommands
from j10ce.model.schema import plain


@click.group("config", cls=Subcommands)
def config_command() -> None:
    """Check or show the configuration.

    \b
    Example:
      j10ce-qos config check
    """


@config_command.command("check")
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
def check_command(folder: Path | None) -> None:
    """Read every file strictly and report every finding; exits 3 if there is one.

    \b
    Example:
      j10ce-qos config check examples/config
    """
    where = folder or config_folder()
    load(where, {})
    count = len(list(where.glob("*.yaml")))
    say(f"{where}: {count} file{'' if count == 1 else 's'}, no findings")


@config_command.command("show")
def show_command() -> None:
    """Show the configuration in force, environment included, defaults left out.

    \b
    Example:
      j10ce-qos config show
    """
    say(dump(plain(load(config_folder())), "yaml"))
