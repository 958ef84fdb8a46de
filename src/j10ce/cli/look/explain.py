"""explain: why a workload's settings are what they are."""

from __future__ import annotations

import click

from j10ce.cli.host.steer import target
from j10ce.cli.meant import suggesting
from j10ce.cli.output import dump, say
from j10ce.cli.peers import Peers, complete_knobs, complete_names, namespace_option, output_option
from j10ce.model.catalogue import KINDS


@click.command("explain")
@click.argument("name", shell_complete=complete_names)
@click.argument("knob", required=False, shell_complete=complete_knobs)
@namespace_option
@output_option
@click.pass_obj
def explain_command(peers: Peers, name: str, knob: str | None, namespace: str, output: str) -> None:
    """Explain why a workload's settings are what they are: who asked, who lost, what clamped them.

    The first lines say what it gets and whether that is what was promised; `-o wide` adds the arithmetic.
    `explain NAME network` shows every managed link: what the workload has there, what it sends, and who gives way.
    `explain node` shows the merged strategies of this node, which strategy set each field, and how far its evictions
    have gone; `explain NAME evict` says whether a workload would have to leave, and why.

    \b
    Example:
      j10ce-qos explain web
      j10ce-qos explain crunch cpu.max
      j10ce-qos explain crunch evict
      j10ce-qos explain api network
      j10ce-qos explain node
      j10ce-qos explain pod/web-0 -n shop     # on Kubernetes, from anywhere
    """
    if name.startswith("pod/"):
        from j10ce.cli.pods.pod import PREFIX, explain_pod

        answer = explain_pod(peers.api(), namespace, name.removeprefix(PREFIX))
        facts = {key: value for key, value in answer.items() if key != "text"}
        say(dump(facts, output) if output in ("json", "yaml") else answer["text"])
        return
    query = {"target": target(namespace, name)} | ({"knob": knob} if knob else {})
    with suggesting(peers, KINDS["Workload"], namespace, name.removeprefix("workload/")):
        answer = peers.agent().get("/v1/explain", **query, **({"wide": "1"} if output == "wide" else {}))
    say(dump(answer, output) if output in ("json", "yaml") else answer["text"])
