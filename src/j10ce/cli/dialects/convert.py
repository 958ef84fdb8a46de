"""convert: another system's configuration as objects of ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from j10ce.cli.dialects.config_map import CONFIG_MAP, converted, is_theirs, manifest
from j10ce.cli.dialects.node_files import is_node_file, node_files
from j10ce.cli.manifests import load_checked
from j10ce.cli.output import Verbatim, dump, say, warn
from j10ce.cli.peers import OneOf, files_option
from j10ce.dialects.koordinator.native.strategies import Generated
from j10ce.dialects.terway.files import GLOBAL, PODS
from j10ce.dialects.terway.native import from_files
from j10ce.errors import Finding, Invalid
from j10ce.model.knob import LINK_TEXT

FOREIGN = frozenset({"ConfigMap", "Node"})


@click.command("convert")
@files_option
@click.option("--link", "links", multiple=True, metavar="NAME", help="A link that carries what Terway's file says.")
@click.option("--lenient", is_flag=True, help="Leave out what is wrong, and say so, instead of printing nothing.")
@click.option("-o", "--output", type=OneOf(("yaml", "json")), default="yaml", show_default=True, help="Format.")
def convert_command(files: tuple[str, ...], links: tuple[str, ...], lenient: bool, output: str) -> None:
    """Turn Koordinator's ConfigMap, or Terway's files of a node, into NodeStrategies, for `apply -f -`.

    Takes the ConfigMap slo-controller-config, and Nodes of Kubernetes whose labels and annotations count; or the files
    global_bps_config and pod.json, by these names, whose rates are bytes a second. What became of what, and what no
    field of ours can say, is named on standard error.

    \b
    Example:
      j10ce-qos convert -f slo-controller-config.yaml
      j10ce-qos convert -f slo-controller-config.yaml -f nodes.yaml | j10ce-qos apply -f -
      j10ce-qos convert -f global_bps_config --link eth0
    """
    own = [*filter(is_node_file, files)]
    _refuse_mixed([name for name in files if name not in own] if own else links, links)
    made = from_files(node_files(own), links) if own else _of_config_map(files)
    if made.findings and not lenient:
        raise Invalid(made.findings, f"{' '.join(own) or CONFIG_MAP} (--lenient leaves out what is wrong)")
    for finding in (*made.findings, *made.notes):
        warn(f"note: {finding}")
    objects = made.all() if isinstance(made, Generated) else made.objects
    _print([manifest(obj) for obj in objects], output, "made into an object" if own else "switched on")


def _refuse_mixed(strange: Iterable[str], links: Iterable[str]) -> None:
    hint = f"convert {GLOBAL} and {PODS}, with --link, and other files each for themselves"
    wrong = [Finding(name, None, "does not belong with the other files", hint) for name in strange]
    hint = "write it as `ip link` does, such as eth0"
    wrong += [Finding("--link", name, "no name of a link", hint) for name in links if not LINK_TEXT.fullmatch(name)]
    if wrong:
        raise Invalid(wrong, "files")


def _of_config_map(files: tuple[str, ...]) -> Generated:
    raws = [raw for raw, _ in load_checked(files, FOREIGN)]
    if not any(map(is_theirs, raws)):
        hint = f"give the ConfigMap {CONFIG_MAP}, or Terway's {GLOBAL} or {PODS}"
        raise Invalid([Finding(" ".join(files), None, "nothing to convert", hint)], "manifests")
    return converted(raws)


def _print(objects: list[dict[str, Any]], output: str, nothing: str) -> None:
    """`nothing`: what nothing is where there are no objects."""
    if not objects:
        warn(f"note: nothing in it is {nothing}, so that nothing is to be said")
    elif output == "yaml":
        say(Verbatim("\n---\n".join(dump(obj, output) for obj in objects)))
    else:
        say(dump({"apiVersion": "v1", "kind": "List", "items": objects}, output))
