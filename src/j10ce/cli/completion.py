"""completion: the line that teaches a shell to complete our commands, workloads, kinds and knobs."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from j10ce.cli.output import Verbatim, say


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    Example:
      j10ce-qos completion bash > /etc/bash_completion.d/j10ce-qos
    """
    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"no completion for {shell}")
    say(Verbatim(completion(ctx.find_root().command, {}, "j10ce-qos", "_J10CE_QOS_COMPLETE").source()))
