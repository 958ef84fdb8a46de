"""completion, help: what teaches a shell, and a person, our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from j10ce.cli.output import Verbatim, say
from j10ce.cli.peers import OneOf


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command, or of all; the same as COMMAND --help.

    \b
    Example:
      j10ce-qos help run
    """
    above = ctx.find_root()
    for word in words:
        if not isinstance(above.command, click.Group):
            raise click.UsageError(f"{above.command_path} has no commands of its own, such as {word!r}", above)
        name, command, _ = above.command.resolve_command(above, [word])
        if command is None:  # click's own word for it, which never comes with a context that parses
            raise click.UsageError(f"No such command {word!r}", above)
        above = click.Context(command, info_name=name, parent=above)
    say(Verbatim(above.get_help()))


@click.command("completion")
@click.argument("shell", type=OneOf(["bash", "zsh", "fish"]))
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
