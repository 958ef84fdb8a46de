"""plan: what would be written, and why. Nothing is touched, and no privileges are needed."""

from __future__ import annotations

import socket
import time
from typing import Any

import click

from j10ce.agent.ring.what_if import as_plain, whatif
from j10ce.cli.manifests import load_checked
from j10ce.cli.output import dump, say
from j10ce.cli.peers import Peers, output_option
from j10ce.errors import Denied, Unreachable
from j10ce.host.files import Files
from j10ce.host.mounts import Hierarchies
from j10ce.model.snapshot import NodeFacts
from j10ce.observe.node import discover

FOREIGN = frozenset({"Pod", "Node"})


@click.command("plan")
@click.option(
    "-f", "--filename", "files", multiple=True, required=True, help="File, directory, or - for standard input."
)
@click.option("--alone", is_flag=True, help="Only these objects: leave out what is in force on this host.")
@output_option
@click.pass_obj
def plan_command(peers: Peers, files: tuple[str, ...], alone: bool, output: str) -> None:
    """What would be written for these objects, and why; nothing is touched.

    Takes profiles, reservations, Workloads, a NodeQoS (the machine to plan for), and Kubernetes Pods and Nodes. Where
    an agent runs, what is in force on this host counts too, unless the files name another machine.

    \b
    Example:
      j10ce-qos plan -f examples/what-if/
    """
    objects = [raw for raw, _ in load_checked(files, FOREIGN)]
    elsewhere = any(raw["kind"] in ("NodeQoS", "Node") for raw in objects)
    told = None if alone or elsewhere else _agents_answer(peers, objects)
    if told is None:
        told = as_plain(whatif(objects, _this_machine(), wall=time.time()))  # noqa: TID251 a command has no other clock
    say(dump(told, output) if output in ("json", "yaml") else told["text"])


def _agents_answer(peers: Peers, objects: list[dict[str, Any]]) -> Any:
    try:
        return peers.agent().post("/v1/plan", {"objects": objects})
    except (Unreachable, Denied):
        return None


def _this_machine() -> NodeFacts:
    return discover(socket.gethostname().lower(), Hierarchies.discover(), Files())
