"""place: choose a node for a workload of the fleet, say why, and hold its floor there until it comes."""

from __future__ import annotations

from typing import Any

import click

from j10ce.cli.manifests import load
from j10ce.cli.output import dump, say, table, warn
from j10ce.cli.paths import BASE, namespace_of
from j10ce.cli.peers import Peers, output_option, seconds
from j10ce.errors import Conflict, Finding, Invalid


@click.command("place")
@click.option("-f", "--filename", "files", multiple=True, required=True, help="File with a Workload, or -.")
@click.option("--explain", is_flag=True, help="Show how every node did: filters, scores, numbers.")
@click.option("--dry-run", is_flag=True, help="Show what would be chosen; reserve nothing.")
@click.option("--for", "span", default="10m", show_default=True, help="How long the floor is held, such as 10m.")
@click.option("--allow-unenforced", is_flag=True, help="Consider nodes whose kernel cannot keep the floor, too.")
@output_option
@click.pass_obj
def place_command(
    peers: Peers, files: tuple[str, ...], explain: bool, dry_run: bool, span: str, allow_unenforced: bool, output: str
) -> None:
    """Choose a node for a workload, and hold its floor there until it comes.

    The workload then finds its floor when it is started on that node under its name, by root or by the user that the
    agent there runs as; what others start does not get it. Asking again gives the same node.

    \b
    Example:
      j10ce-qos place --dry-run --explain -f examples/fleet/workload.yaml
      j10ce-qos place --for 1h -f examples/fleet/workload.yaml
    """
    seconds("--for", span)
    query = {"for": span, "dryRun": "All" if dry_run else "", "unenforced": "allow" if allow_unenforced else ""}
    api = peers.api()
    placements = []
    for raw in _workloads(files):
        body = {**raw, "metadata": {**raw["metadata"], "namespace": namespace_of(raw)}}
        placement = api.post(f"{BASE}/placements", body, **{name: value for name, value in query.items() if value})
        placements.append(placement)
        if output not in ("json", "yaml"):
            say(placed_text(placement, explain=explain, wide=output == "wide"))
    if output in ("json", "yaml"):
        say(dump(placements[0] if len(placements) == 1 else placements, output))
    if dry_run and not all(p["node"] for p in placements):
        raise Conflict("no node fits")


def placed_text(placement: dict[str, Any], *, explain: bool, wide: bool = False) -> str:
    meta = placement["metadata"]
    lines = [f"{meta['namespace']}/{meta['name']}: {placement['node'] or 'no node'}", f"  {placement['message']}"]
    floor = ", ".join(f"{name} {amount}" for name, amount in placement["floor"].items())
    if placement["standsOn"]:
        lines.append(f"  takes a unit of {placement['standsOn']}: {floor}")
    if placement["reservation"]:
        does = "keeps the unit for it" if placement["standsOn"] else f"holds {floor}"
        lines.append(f"  {placement['reservation']} {does} until {placement['expires']}")
    if explain:
        lines += ["", _verdicts(placement["nodes"])]
        lines += [_scores(v) for v in placement["nodes"] if v["fits"] and (wide or v["node"] == placement["node"])]
    return "\n".join(lines)


def _verdicts(nodes: list[dict[str, Any]]) -> str:
    rows = [
        (v["node"], "yes" if v["fits"] else "no", f"{v.get('score', 0):.1f}" if v["fits"] else None,
         v.get("reason") or ", ".join(f"{s['name']} {s['points']:.1f}" for s in v["scores"]))
        for v in nodes
    ]  # fmt: skip
    return table(["NODE", "FITS", "SCORE", "WHY"], rows)


def _scores(verdict: dict[str, Any]) -> str:
    rows = [(s["name"], f"{s['points']:.1f}", f"{s['of']:.1f}", s.get("why")) for s in verdict["scores"]]
    rows.append(("total", f"{verdict.get('score', 0):.1f}", "100.0", None))
    return f"\n{verdict['node']}:\n" + table(["SCORE", "POINTS", "OF", "WHY"], rows)


def _workloads(files: tuple[str, ...]) -> list[dict[str, Any]]:
    objects = load(files)
    for raw in objects:
        if raw["kind"] != "Workload":
            raise Invalid([Finding("kind", raw["kind"], "cannot be placed", "give a Workload")], "manifest")
    if len(objects) > 1:
        warn("several workloads are placed one after the other; a dry run looks at each alone")
    return objects
