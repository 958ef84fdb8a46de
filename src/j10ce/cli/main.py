"""The `j10ce-qos` command: a table of commands, loaded when used, and one place that turns errors into exit codes."""

from __future__ import annotations

import importlib
import io
import os
import sys
from typing import Final

import click
from click.core import ParameterSource

from j10ce import __version__
from j10ce.errors import NotFound, QosError

# Name: (module, what it does). The help of `j10ce-qos` itself comes from here, so that it need not import them all.
COMMANDS: Final = {
    "up": ("host.up", "Run the whole stack in the foreground"),
    "run": ("host.workloads", "Run a command as a managed workload"),
    "adopt": ("host.workloads", "Manage what already runs: process, unit or cgroup"),
    "forget": ("host.workloads", "Stop managing a workload; its processes keep running"),
    "apply": ("fleet.objects", "Create or update objects from files"),
    "diff": ("fleet.objects", "Show what apply would change"),
    "convert": ("dialects.convert", "Turn Koordinator's ConfigMap into objects of ours"),
    "plan": ("host.plan", "Show what would be written, and why; change nothing"),
    "place": ("fleet.place", "Choose a node for a workload, and hold its floor there"),
    "prove": ("prove.prove", "Measure what each profile protects, on this machine"),
    "calibrate": ("prove.calibrate", "Measure what a disk can do, so that it can be promised"),
    "sim": ("simulate.sim", "Try a cluster in memory before it is touched"),
    "cordon": ("fleet.nodes", "Place nothing more on a node"),
    "uncordon": ("fleet.nodes", "Let a node be chosen again"),
    "get": ("fleet.get", "List objects of a kind, or show one"),
    "describe": ("fleet.get", "Show all that is known about one object"),
    "delete": ("fleet.objects", "Delete objects by name or by file"),
    "rollout": ("fleet.rollout", "Follow, hold, resume and undo changes of policies"),
    "explain": ("look.explain", "Explain why a workload's settings are what they are"),
    "top": ("look.top", "Show what workloads use and were promised"),
    "status": ("look.status", "Show what the agent is doing"),
    "doctor": ("host.doctor", "Show what this machine can enforce, and what is missing"),
    "hold": ("host.steer", "Freeze settings until the hold expires"),
    "release": ("host.steer", "End holds"),
    "disarm": ("host.steer", "The kill switch: stop all writes at once"),
    "arm": ("host.steer", "Let the agent write again"),
    "revert": ("host.steer", "Put every original value back"),
    "config": ("host.config", "Check or show the configuration"),
    "certs": ("fleet.certs", "Make certificates for a fleet's control plane"),
    "token": ("fleet.tokens", "Make, list and revoke tokens for the API"),
    "backup": ("fleet.backup", "Write all objects into a file"),
    "restore": ("fleet.backup", "Bring a backup into an empty store"),
    "migrate": ("fleet.backup", "Copy all objects from one store into another"),
    "plugins": ("host.plugins", "List controllers and other plugins"),
    "completion": ("completion", "Print the completion script of a shell"),
    "bundle": ("host.bundle", "Collect what a bug report needs"),
    "help": ("completion", "Show the help of a command"),
}

# What other tools call it.
ELSEWHERE: Final = {
    "ps": "get workloads", "list": "get", "ls": "get", "stats": "top", "version": "--version", "edit": "apply -f FILE",
    "create": "apply -f FILE", "rm": "delete", "set": "hold", "exec": "run", "start": "up", "stop": "revert",
    "down": "revert", "check": "doctor", "drain": "cordon", "events": "explain NAME", "info": "status",
    "show": "describe", "undo": "revert", "pause": "disarm", "resume": "arm", "unhold": "release",
}  # fmt: skip
LOGS: Final = "logs are beside the socket, in /run/j10ce-qos/agent.log, or in `journalctl -u j10ce-qos-agent`."
INTERRUPTED: Final = 130


class Commands(click.Group):
    """Imports a command's module only when it is used: `run` starts in the time of one import."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"j10ce.cli.{COMMANDS[name][0]}")
        command = getattr(module, f"{name}_command")
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A name that no command has is answered with the one that was meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as e:
            from j10ce.model.text.near import near

            meant = ELSEWHERE.get(e.command_name) or near(e.command_name, COMMANDS)
            hint = f"did you mean `j10ce-qos {meant}`?" if meant else "`j10ce-qos --help` lists them."
            hint = LOGS if e.command_name in ("log", "logs") else hint
            raise click.UsageError(f"No such command {e.command_name!r}; {hint}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, does) for name, (_, does) in COMMANDS.items()])


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="j10ce-qos")
@click.option("--server", envvar="J10CE_SERVER", help="API address, or several with commas; default: that of `up`.")
@click.option("--token-file", envvar="J10CE_TOKEN_FILE", type=click.Path(dir_okay=False), help="Token for --server.")
@click.option("--ca-file", envvar="J10CE_CA_FILE", type=click.Path(dir_okay=False), help="Authority of --server.")
@click.option(
    "--kubeconfig", envvar="J10CE_KUBECONFIG", type=click.Path(dir_okay=False), help="File with all of these."
)
@click.pass_context
def cli(ctx: click.Context, /, **where: str | None) -> None:
    """Quality of service for Linux workloads: a workload gets what it was promised.

    \b
    Example:
      j10ce-qos up                                        # in one terminal
      j10ce-qos run --profile ls --name web -- redis-server
      j10ce-qos explain web

    \b
    Exit codes:
      0  done                 4  agent or API does not answer
      1  failed, or differs   5  denied
      2  wrong usage          6  not found
      3  invalid input        7  conflict, or busy
      run: the command's own; 125 not placed, 126 not executable,
           127 not found, 128+n ended by signal n
    """
    from j10ce.cli.peers import Peers

    ctx.obj = Peers(**{name: value for name, value in where.items() if where["server"] or not _standing(ctx, name)})


def _standing(ctx: click.Context, name: str) -> bool:
    """A file for a server that a variable names: it waits for commands that name the server."""
    return name in ("token_file", "ca_file") and ctx.get_parameter_source(name) is ParameterSource.ENVIRONMENT


def main() -> None:
    """Entry point. An error is one clear message, never a traceback, unless J10CE_DEBUG is set."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without × shows ?, and not an error
    try:
        sys.exit(cli(prog_name="j10ce-qos", standalone_mode=False))
    except click.ClickException as e:
        e.show()
        sys.exit(e.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has enough (`| head`); let the interpreter's own flush fail quietly too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(0)
    except Exception as e:
        if os.environ.get("J10CE_DEBUG"):
            raise
        from j10ce.cli.output import report

        sys.exit(report(_of_ours(e)))


def _of_ours(error: Exception) -> QosError:
    if isinstance(error, QosError):
        return error
    if isinstance(error, OSError):
        kind = NotFound if isinstance(error, FileNotFoundError) else QosError
        return kind(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    if isinstance(error, ValueError) and "null byte" in str(error):  # of the system's calls, whatever path it was
        return QosError("a path holds a null byte; no file can be called so")
    what = f"{type(error).__name__}: {error}"
    return QosError(f"{what}; this is a bug: run again with J10CE_DEBUG=1 and report what it says")


if __name__ == "__main__":
    main()
