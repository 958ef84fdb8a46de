"""plan: what would be written, and why. Nothing is touched, and no privileges are needed."""

from __future__ import annotations

import socket
import time
from typing import Any, Final

import click

from j10ce.agent.dialects import DIALECTS, dialect
from j10ce.agent.ring.what_if import as_plain, whatif
from j10ce.cli.dialects.config_map import CONFIG_MAP, DIALECT, converted, is_strange, is_theirs, manifest
from j10ce.cli.manifests import load_checked
from j10ce.cli.output import dump, say, warn
from j10ce.cli.peers import OneOf, Peers, files_option, output_option
from j10ce.errors import Denied, Invalid, Unreachable
from j10ce.host.files import Files
from j10ce.host.mounts import Hierarchies
from j10ce.model.text.cells import dig
from j10ce.observe.sensors.node import discover
from j10ce.policy.document.document import HOSTNAME_LABEL
from j10ce.policy.strategy import selects

# Kubernetes' kinds that make pods, by the path of their template.
TEMPLATES: Final = {
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"), "spec.template"),
    "CronJob": "spec.jobTemplate.spec.template",
}
BESIDE: Final = frozenset(  # what stands in the same files, and changes nothing here
    {"Service", "ConfigMap", "Secret", "ServiceAccount", "Ingress", "PersistentVolumeClaim"}
)
FOREIGN: Final = frozenset({"Pod", "Node", "Namespace", *TEMPLATES}) | BESIDE


@click.command("plan")
@files_option
@click.option("--alone", is_flag=True, help="Only these objects: leave out what is in force on this host.")
@click.option(
    "--dialect",
    "dialects",
    multiple=True,
    type=OneOf([*DIALECTS]),
    help="Understand another system's labels and annotations; implies --alone.",
)
@output_option
@click.pass_obj
def plan_command(peers: Peers, files: tuple[str, ...], alone: bool, dialects: tuple[str, ...], output: str) -> None:
    """Show what would be written for these objects, and why; change nothing.

    Takes profiles, reservations, Workloads, a NodeQoS (the machine to plan for), and Kubernetes Pods and Nodes.
    For a Deployment, a StatefulSet, a Job and similar kinds, one pod is planned. Pods are where a kubelet would put
    them, and the labels of their Namespace count. Koordinator's ConfigMap slo-controller-config counts as the
    strategies that it has for the Node, and its dialect is understood. If an agent runs here, what is in force on this
    host counts too, unless the files name another machine.

    \b
    Example:
      j10ce-qos plan -f examples/what-if/
      j10ce-qos plan -f pods.yaml -f slo-controller-config.yaml -f node.yaml
    """
    raws = [raw for raw, _ in load_checked(files, FOREIGN)]
    objects = [pod_of(raw) for raw in raws if raw["kind"] not in BESIDE]
    if any(map(is_theirs, raws)):
        objects += _strategies(raws)
        dialects = dialects or (DIALECT,)
    for raw in filter(is_strange, raws):
        warn(f"note: ConfigMap {dig(raw, 'metadata.name')} is not looked at; the one that counts is {CONFIG_MAP}")
    elsewhere = any(raw["kind"] in ("NodeQoS", "Node") for raw in objects)
    answer = None if alone or dialects or elsewhere else _agents_answer(peers, objects)
    if answer is None:
        this_machine = discover(socket.gethostname().lower(), Hierarchies.discover(), Files())
        wall = time.time()  # noqa: TID251 a command has no other clock
        answer = as_plain(whatif(objects, this_machine, wall=wall, translate=dialect(dialects)))
    say(dump(answer, output) if output in ("json", "yaml") else answer["text"])


def _strategies(raws: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What Koordinator's ConfigMap says of the node that is planned for. Raises Invalid."""
    made = converted(raws)
    if made.findings:
        raise Invalid(made.findings, CONFIG_MAP)
    for note in made.notes:
        warn(f"note: {note}")
    node = next((raw for raw in raws if raw["kind"] == "Node"), {})
    labels = {**(dig(node, "metadata.labels") or {}), HOSTNAME_LABEL: dig(node, "metadata.name") or ""}
    return [manifest(strategy) for strategy in made.all() if selects(strategy, labels)]


def pod_of(raw: dict[str, Any]) -> dict[str, Any]:
    """One of the pods that an object of Kubernetes makes; any other object as it is."""
    if raw["kind"] not in TEMPLATES:
        return raw
    template = TEMPLATES[raw["kind"]]
    named = {"name": dig(raw, "metadata.name") or "", "namespace": dig(raw, "metadata.namespace") or "default"}
    said = {name: dig(raw, f"{template}.metadata.{name}") or {} for name in ("labels", "annotations")}
    spec = dig(raw, f"{template}.spec") or {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**named, **said}, "spec": spec}


def _agents_answer(peers: Peers, objects: list[dict[str, Any]]) -> Any:
    try:
        return peers.agent().post("/v1/plan", {"objects": objects})
    except (Unreachable, Denied):
        return None
