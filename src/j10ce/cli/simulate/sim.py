"""sim: a cluster in memory, under the scheduler's own code."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click
from msgspec.structs import replace

from j10ce.cli.output import dump, progress, say
from j10ce.cli.peers import OneOf, Peers, Whole, seconds
from j10ce.cli.simulate.cluster import tables
from j10ce.errors import Finding, Invalid
from j10ce.model.quantity import Duration, Quantity
from j10ce.model.text.near import one_of
from j10ce.sim.cluster.given.limits import LONGEST_S, MOST_NODES, POLICIES
from j10ce.sim.cluster.given.scenario import Scenario, ScenarioNodes
from j10ce.sim.cluster.given.source import read_scenario
from j10ce.sim.cluster.given.trace import Trace
from j10ce.sim.cluster.outcome import PolicyOutcome, changes
from j10ce.sim.cluster.plot import plotted
from j10ce.sim.cluster.simulate import RunStep, Subject, compared

PLAIN_CPU, PLAIN_MEMORY = "32", "128Gi"  # of a node of which only the number is said
LIVE_S = 3600.0
MOST_SEEDS = 1000


class Sources(NamedTuple):
    """Where a simulation comes from, as the options say it."""

    file: str | None
    trace: str | None
    live: bool
    nodes: int | None
    horizon: str | None


@click.group("sim")
def sim_command() -> None:
    """Try a cluster in memory, under the scheduler's own code, before it is touched.

    \b
    Example:
      j10ce-qos sim cluster -f examples/sim/contention.yaml
    """


@sim_command.command("cluster")
@click.option("-f", "--filename", "file", help="File with a scenario.")
@click.option("--trace", help="CSV file with an owner in each row; nodes and classes are those of -f.")
@click.option("--live", is_flag=True, help="Begin with a live cluster; --kubeconfig names it.")
@click.option(
    "--nodes",
    type=Whole(1, MOST_NODES),
    help="So many nodes: of the size of the first of -f, or 32 CPUs and 128Gi.",
)
@click.option("--horizon", help="How long it runs, such as 1h; default: as -f or the trace says, or 1h.")
@click.option("--policy", default="lazy", show_default=True, help=f"Of {', '.join(POLICIES)}; several with commas.")
@click.option("--seeds", type=Whole(1, MOST_SEEDS), default=1, show_default=True, help="How many runs of each.")
@click.option("--seed", type=int, default=1, show_default=True, help="The first one.")
@click.option(
    "--what-if", "what_ifs", multiple=True, help="slo.CLASS=0.95, nodes=-10%, margin=45s, overhead=+3s, drain=NODE."
)
@click.option("--plot", type=click.Path(dir_okay=False, writable=True), help="Draw it into this SVG file.")
@click.option("--owners", type=Whole(0, 1000), default=0, help="Show so many of those that lack the most.")
@click.option("-o", "--output", type=OneOf(("table", "json")), default="table", show_default=True, help="Format.")
@click.pass_obj
def cluster_command(
    peers: Peers, policy: str, seeds: int, seed: int, what_ifs: tuple[str, ...], plot: str | None, owners: int,
    output: str, file: str | None, trace: str | None, live: bool, nodes: int | None, horizon: str | None,
) -> None:  # fmt: skip
    """Simulate hours of a cluster under one policy or several.

    It says how available each owner was, and what that took.

    Policies: `lazy` preempts only where an SLO is about to be missed, `classic` by the published rules of QosAware,
    `priority` as kube-scheduler does. The same seed gives the same result; several seeds give means with an interval
    of confidence of 95 %. Each --what-if is a variant by itself; several changes of one have commas between them. A
    live cluster is the one that --kubeconfig names.

    \b
    Example:
      j10ce-qos sim cluster -f examples/sim/contention.yaml --policy lazy,classic,priority --seeds 10 --plot out.svg
      j10ce-qos sim cluster --trace trace.csv --nodes 5000 --what-if slo.batch=0.95 --what-if nodes=-10%
      j10ce-qos sim cluster --live --what-if drain=node-7 -o json
    """
    policies = _policies(policy)
    subject = _subject(peers, Sources(file, trace, live, nodes, horizon))
    outcomes = compared(subject, policies, range(seed, seed + seeds), what_ifs, Progress())
    if plot:
        promised = {name: of.slo for name, of in subject.scenario.classes.items()}
        Path(plot).write_text(plotted(subject.scenario.name, outcomes, promised), encoding="utf-8")
    if output == "json":
        say(dump(_plain(subject.scenario, outcomes, range(seed, seed + seeds)), output))
    else:
        say(tables(outcomes, owners))


class Progress:
    """One line on standard error: rewritten on a terminal, else once a run."""

    def __call__(self, step: RunStep) -> None:
        what = f"{step.policy}{f', {step.what_if}' if step.what_if else ''}, seed {step.seed}: {step.share:.0%}"
        progress(what, last=step.share >= 1)


def _policies(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    wrong = [
        Finding("--policy", name, "no such policy", one_of(name, POLICIES)) for name in names if name not in POLICIES
    ]
    if wrong:
        raise Invalid(wrong, "option")
    return list(dict.fromkeys(names))


def _subject(peers: Peers, where: Sources) -> Subject:
    files = bool(where.file or where.trace)
    if where.live == files or (where.live and where.nodes):
        hint = "give -f FILE, --trace FILE with --nodes or -f, or --live alone"
        raise Invalid([Finding("sim cluster", None, "nothing to simulate, or too much", hint)], "option")
    horizon_s = seconds("--horizon", where.horizon) if where.horizon else 0.0
    if where.horizon and not 0 < horizon_s <= LONGEST_S:
        raise Invalid(
            [Finding("--horizon", where.horizon, "not a horizon", "give more than 0s, at most 366d")], "option"
        )
    if where.live:
        from j10ce.cli.simulate.live import observed

        cluster = observed(peers.api(), horizon_s or LIVE_S)
        return Subject(cluster.scenario, cluster.arrivals)
    scenario = read_scenario(where.file, Path(where.file).read_bytes()) if where.file else None
    if where.nodes:
        scenario = _of_plain_nodes(scenario, where.nodes)
    if scenario is None:
        raise Invalid([Finding("--trace", where.trace, "has no nodes", "give --nodes, or -f with nodes")], "option")
    if horizon_s:
        scenario = replace(scenario, horizon=Duration(horizon_s))
    if where.trace is None:
        return Subject(scenario)
    trace = Trace(Path(where.trace), scenario.classes)
    extent = trace.extent()
    until = scenario.horizon if where.file or horizon_s else Duration(max(extent.end, extent.last, 1.0))
    return Subject(replace(scenario, classes=extent.classes, horizon=until, name=where.trace), trace.arrivals)


def _of_plain_nodes(scenario: Scenario | None, count: int) -> Scenario:
    if scenario is not None:
        return replace(scenario, nodes=(replace(scenario.nodes[0], count=count),))
    cpu, memory = Quantity.parse(PLAIN_CPU), Quantity.parse(PLAIN_MEMORY)
    nodes = (ScenarioNodes(name="node", count=count, cpu=cpu, memory=memory),)
    return Scenario(horizon=Duration(LIVE_S), nodes=nodes, classes={})


def _plain(scenario: Scenario, outcomes: list[PolicyOutcome], seeds: range) -> dict[str, object]:
    return {
        "name": scenario.name,
        "horizonSeconds": scenario.horizon.seconds,
        "seeds": list(seeds),
        "outcomes": [outcome.plain() for outcome in outcomes],
        "changes": [change.plain() for change in changes(outcomes)],
    }
