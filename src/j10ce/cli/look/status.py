"""status: what the agent of this host is doing."""

from __future__ import annotations

from typing import Any, Final

import click

from j10ce.cli.output import dump, say, table
from j10ce.cli.peers import Peers, output_option
from j10ce.model.text.cells import amount_of, shown

LISTS: Final = ("refused", "notes", "warnings")
# Facts by the words that people use; the house's own word stands behind.
WORDS: Final = {
    "node": "node", "armed": "writes (armed)", "unwritable": "read-only because", "workloads": "workloads",
    "promised": "promised", "free": "free to promise", "held": "settings held by operators",
    "drifted": "settings changed by others", "lastPlan": "last changes", "faults": "controllers that failed",
    "ringCpuMs": "CPU of the last loop, ms", "document": "generation of its orders", "server": "control plane",
}  # fmt: skip


@click.command("status")
@output_option
@click.pass_obj
def status_command(peers: Peers, output: str) -> None:
    """Show what the agent is doing: whether it writes, workloads, holds, drift, last changes.

    The generation of its orders is the hash of what the control plane wants of this host.

    \b
    Example:
      j10ce-qos status
    """
    status = peers.agent().get("/v1/status")
    if output in ("json", "yaml"):
        say(dump(status, output))
        return
    say(table(["FACT", "VALUE"], _rows(status)))
    for name in LISTS:
        if status.get(name):
            say("\n".join([f"{name}:", *(f"  {shown(line)}" for line in status[name])]))


def _rows(status: dict[str, Any]) -> list[tuple[str, object]]:
    amounts = {name: _amounts(status[name]) for name in ("promised", "free")}
    known = [(words, (status | amounts)[name]) for name, words in WORDS.items() if name in status]
    return known + [(name, value) for name, value in status.items() if name not in (*WORDS, *LISTS)]


def _amounts(resources: dict[str, str]) -> str:
    return ", ".join(f"{name} {amount_of(name, amount)}" for name, amount in resources.items()) or "nothing"
