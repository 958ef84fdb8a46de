"""Write docs/cli.md from the commands themselves."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path

# Help is wrapped and paths are spelled the same wherever this runs.
os.environ |= {"COLUMNS": "100", "TERMINAL_WIDTH": "100"}

import click

from j10ce.cli.main import COMMANDS, cli

DOCS = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
GROUPS = {
    "Run workloads": ("up", "run", "adopt", "forget"),
    "Declare": ("apply", "diff", "convert", "plan", "get", "describe", "delete", "rollout"),
    "Fleet": ("place", "cordon", "uncordon", "sim"),
    "Look": ("explain", "top", "status", "doctor", "prove", "calibrate"),
    "Steer": ("hold", "release", "disarm", "arm", "revert"),
    "Keep": ("backup", "restore", "migrate"),
    "Set up": ("config", "certs", "token", "plugins", "completion", "help", "bundle"),
}
HEAD = """# The `j10ce-qos` command

<!-- `make generate` writes this page from the commands; `j10ce-qos COMMAND --help` says the same. -->

Every listing takes `-o table|wide|json|yaml`. `j10ce-qos completion bash|zsh|fish` prints what completes commands,
kinds, names, profiles and knobs. Without `--server` a command talks to the agent and the API of this host.

## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | failed; `diff`: something differs; `revert`, `disarm --revert` and Ctrl-C of `up`: a value was left alone |
| 2 | wrong usage |
| 3 | invalid input; the message lists every finding |
| 4 | the agent or the API does not answer |
| 5 | denied, with the reason; nothing was changed |
| 6 | not found |
| 7 | conflict, or someone else holds it |
| 130 | a watch ended by Ctrl-C |

`run` ends with the command's own code; 125 if the command could not be placed, 126 if it is not executable, 127 if
there is no such command, 128 + n if signal n ended it.

## Environment

| variable | meaning |
|---|---|
| `J10CE_SERVER`, `J10CE_KUBECONFIG` | as `--server` and `--kubeconfig` |
| `J10CE_TOKEN_FILE`, `J10CE_CA_FILE` | as `--token-file` and `--ca-file`, where there is a server they are for |
| `J10CE_LISTEN` | as `up --listen` |
| `J10CE_RUN_DIR` | instead of `/run/j10ce-qos` |
| `J10CE_STATE_DIR` | instead of `/var/lib/j10ce-qos` |
| `J10CE_CONFIG_DIR` | instead of `/etc/j10ce-qos` |
| `J10CE_TOP` | name of our group at the top of the cgroup tree, `j10ce` by default |
| `J10CE_DEBUG` | show the traceback of an unexpected error |
"""


def main() -> None:
    DOCS.write_text(page())


def page() -> str:
    missing = set(COMMANDS).symmetric_difference(name for names in GROUPS.values() for name in names)
    if missing:
        raise SystemExit(f"every command belongs to one group: {sorted(missing)}")
    root = click.Context(cli, info_name="j10ce-qos")
    parts = [HEAD]
    for title, names in GROUPS.items():
        parts.append(f"\n## {title}\n")
        for name in names:
            command = cli.get_command(root, name)
            if command is not None:
                parts += section(command, click.Context(command, info_name=name, parent=root))
    return "\n".join(parts).rstrip() + "\n"


def section(command: click.Command, ctx: click.Context) -> Iterator[str]:
    yield f"### {ctx.command_path}\n"
    text, _, example = inspect.cleandoc(command.help or "").partition("\b\nExample:\n")
    yield text.strip() + "\n"
    yield f"Usage: `{_plain(command.get_usage(ctx).removeprefix('Usage: '))}`\n"
    if example.strip():
        yield f"```sh\n{inspect.cleandoc(example)}\n```\n"
    yield from options(command, ctx)
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from section(inner, click.Context(inner, info_name=name, parent=ctx))


def options(command: click.Command, ctx: click.Context) -> Iterator[str]:
    records = [r for p in command.params if isinstance(p, click.Option) and (r := p.get_help_record(ctx))]
    if records:
        rows = (f"| `{_plain(flags)}` | {_plain(text)} |" for flags, text in records)
        yield "\n".join(("| option | |", "|---|---|", *rows)) + "\n"


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


if __name__ == "__main__":
    main()
