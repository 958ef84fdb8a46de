"""explain, top, status: what the agent knows and why it did what it did."""

from __future__ import annotations

from typing import Any

import click

from j10ce.cli.host.steer import target
from j10ce.cli.output import dump, say, table
from j10ce.cli.peers import Peers, complete_knobs, complete_names, namespace_option, output_option
from j10ce.errors import NotFound
from j10ce.model.resource import spell
from j10ce.model.text.cells import shown


@click.command("explain")
@click.argument("name", shell_complete=complete_names)
@click.argument("knob", required=False, shell_complete=complete_knobs)
@namespace_option
@output_option
@click.pass_obj
def explain_command(peers: Peers, name: str, knob: str | None, namespace: str, output: str) -> None:
    """Why a workload's settings are what they are: who asked, who lost, what clamped.

    \b
    Example:
      j10ce-qos explain web
      j10ce-qos explain crunch cpu.max
      j10ce-qos explain pod/web-0 -n shop     # on Kubernetes, from anywhere
    """
    if name.startswith("pod/"):
        from j10ce.cli.fleet.pod import PREFIX, explain_pod

        told = explain_pod(peers.api(), namespace, name.removeprefix(PREFIX))
        facts = {key: value for key, value in told.items() if key != "text"}
        say(dump(facts, output) if output in ("json", "yaml") else told["text"])
        return
    query = {"target": target(namespace, name)} | ({"knob": knob} if knob else {})
    try:
        told = peers.agent().get("/v1/explain", **query)
    except NotFound as e:
        raise NotFound(f"{e}{_elsewhere(peers, name)}") from None
    say(dump(told, output) if output in ("json", "yaml") else told["text"])


def _elsewhere(peers: Peers, name: str) -> str:
    """Workloads of that name in other namespaces."""
    listed = (w["metadata"] for w in peers.agent().get("/v1/workloads")["items"])
    found = [f"{meta['namespace']}/{name}" for meta in listed if meta["name"] == name]
    return f"; there is {', '.join(found)}" if found else ""


@click.command("top")
@click.option("-w", "--watch", is_flag=True, help="Refresh every two seconds until Ctrl-C.")
@output_option
@click.pass_obj
def top_command(peers: Peers, watch: bool, output: str) -> None:
    """What workloads use, beside what they were promised.

    WAIT is the share of time in which a task waited for a CPU (- before it is known), CAPPED that in which its limit
    kept it from one.

    \b
    Example:
      j10ce-qos top
    """
    import time

    while True:
        told = peers.agent().get("/v1/top")
        if watch:
            click.clear()
        say(dump(told, output) if output in ("json", "yaml") else _top(told, wide=output == "wide"))
        if not watch:
            return
        time.sleep(2)


def _top(told: dict[str, Any], wide: bool) -> str:
    node = told["node"]
    head = (
        f"node {node['name']}: cpu {node['cpu']:.2f} of {node['cpus']}, memory {spell('memory', node['memory'])} of "
        f"{spell('memory', node['memoryTotal'])}\n"
        f"waiting for cpu {node['pressure']['cpu']:.0%}, memory {node['pressure']['memory']:.0%}, "
        f"io {node['pressure']['io']:.0%} of the time"
    )
    rows = [
        [
            w["name"] if w["namespace"] == "default" else f"{w['namespace']}/{w['name']}", w["profile"],
            f"{w['cpu']:.2f}", spell("cpu", w["floor"]["cpu"]) if w["floor"]["cpu"] else None,
            spell("memory", w["memory"]), spell("memory", w["floor"]["memory"]) if w["floor"]["memory"] else None,
            None if w["pressure"] is None else f"{w['pressure']:.0%}", f"{w['throttled']:.0%}",
            *([w["tier"], w["cgroup"]] if wide else []),
        ]
        for w in told["workloads"]
    ]  # fmt: skip
    headings = ["NAME", "PROFILE", "CPU", "FLOOR", "MEMORY", "FLOOR", "WAIT", "CAPPED"]
    return head + "\n" + (table([*headings, *(["TIER", "CGROUP"] if wide else [])], rows) if rows else "no workloads")


@click.command("status")
@output_option
@click.pass_obj
def status_command(peers: Peers, output: str) -> None:
    """What the agent is doing: armed or not, workloads, holds, drift, last plan.

    `lastPlan` counts what became of the last changes, `document` is the hash of what the control plane wants of this
    host, `ringCpuMs` the CPU time that the last look at everything took.

    \b
    Example:
      j10ce-qos status
    """
    told = peers.agent().get("/v1/status")
    if output in ("json", "yaml"):
        say(dump(told, output))
        return
    lists = ("refused", "notes", "warnings")
    say(table(["FACT", "VALUE"], [(k, v) for k, v in told.items() if k not in lists]))
    for name in lists:
        if told.get(name):
            say("\n".join([f"{name}:", *(f"  {shown(line)}" for line in told[name])]))
