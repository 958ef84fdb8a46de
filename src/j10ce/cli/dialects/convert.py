"""convert: another system's configuration as objects of ours."""

from __future__ import annotations

import click

from j10ce.cli.dialects.config_map import CONFIG_MAP, converted, is_theirs, manifest
from j10ce.cli.manifests import load_checked
from j10ce.cli.output import Verbatim, dump, say, warn
from j10ce.cli.peers import OneOf, files_option
from j10ce.errors import Finding, Invalid

FOREIGN = frozenset({"ConfigMap", "Node"})


@click.command("convert")
@files_option
@click.option("--lenient", is_flag=True, help="Leave out what is wrong, and say so, instead of printing nothing.")
@click.option("-o", "--output", type=OneOf(("yaml", "json")), default="yaml", show_default=True, help="Format.")
def convert_command(files: tuple[str, ...], lenient: bool, output: str) -> None:
    """Turn Koordinator's ConfigMap into NodeStrategies, for `apply -f -`.

    Takes the ConfigMap slo-controller-config, and Nodes of Kubernetes whose labels and annotations count. What no field
    of ours can say is named on standard error.

    \b
    Example:
      j10ce-qos convert -f slo-controller-config.yaml
      j10ce-qos convert -f slo-controller-config.yaml -f nodes.yaml | j10ce-qos apply -f -
    """
    raws = [raw for raw, _ in load_checked(files, FOREIGN)]
    if not any(map(is_theirs, raws)):
        hint = f"give the ConfigMap {CONFIG_MAP}"
        raise Invalid([Finding(" ".join(files), None, "nothing to convert", hint)], "manifests")
    made = converted(raws)
    if made.findings and not lenient:
        raise Invalid(made.findings, f"{CONFIG_MAP} (--lenient leaves out what is wrong)")
    for finding in (*made.findings, *made.notes):
        warn(f"note: {finding}")
    objects = [manifest(obj) for obj in made.all()]
    if not objects:
        warn("note: nothing in it is switched on, so that nothing is to be said")
    elif output == "yaml":
        say(Verbatim("\n---\n".join(dump(obj, output) for obj in objects)))
    else:
        say(dump({"apiVersion": "v1", "kind": "List", "items": objects}, output))
