"""prove: the same service alone, without QoS, as others protect it, and under our profiles; on this machine."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from j10ce.cli.client import Client
from j10ce.cli.output import Verbatim, say, warn
from j10ce.cli.peers import Number, OneOf, Peers, Whole
from j10ce.errors import Busy, Unsupported

if TYPE_CHECKING:
    from j10ce.bench.scenarios import Contest

WIDE: Final = 100  # columns of a pipe or a file
ALL: Final = "all"
REDIS: Final = "redis"
SCENARIOS: Final = ("cpu", "wakers", "forkers", "unmanaged", "diurnal", "network", "disk", "memory", ALL)


@click.command("prove")
@click.argument("scenario", type=OneOf(SCENARIOS), default="cpu")
@click.option("--quick", is_flag=True, help="Half a minute, live: without QoS, with it, without it.")
@click.option("--with", "server", type=OneOf((REDIS,)), help="The service is a real server, instead of one of ours.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask, though the machine is busy or manages workloads.")
@click.option("--rounds", type=Whole(1, 99), help="How often each arm has its turn; default: 3.")
@click.option("--seconds", type=Number(1, 60), help="How long each turn lasts; default: 4.")
@click.option(
    "--output",
    "folder",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=Path(),
    help="Where prove.html and prove.json are written; default: this folder.",
)
@click.pass_obj
def prove_command(
    peers: Peers,
    scenario: str,
    quick: bool,
    server: str | None,
    yes: bool,
    rounds: int | None,
    seconds: float | None,
    folder: Path,
) -> None:
    """Measure what each profile protects, on this machine.

    A service with random arrivals runs in turns: alone; beside processes that want all CPUs, without QoS; as kubelet
    and Koordinator would protect it; under profiles of ours; and under SCHED_FIFO, which is the most that the kernel
    can give. Its latency counts from the instant at which a request was due. It takes two minutes, needs root, and
    leaves nothing on the machine but prove.html and prove.json, also after Ctrl-C.

    Other scenarios: beside processes that wake thousands of times a second (wakers), that start others without end
    (forkers), or that nobody manages (unmanaged); a day from 20 to 90 % of the machine and back (diurnal); small
    requests beside bulk on one link (network), reads beside writers on one disk (disk), a working set beside who reads
    more than a box of memory holds (memory), each on a link, a disk or in a box of the run's own; or all.

    \b
    Example:
      j10ce-qos prove --quick
      j10ce-qos prove network
      j10ce-qos prove --with redis
    """
    from j10ce.bench.report.files import refuse_unwritable, write_files
    from j10ce.bench.report.text import drawn
    from j10ce.bench.run import run
    from j10ce.bench.scenarios import SCENARIOS as KNOWN
    from j10ce.bench.scenarios import quick as shortened
    from j10ce.bench.scratch import refuse_unprivileged
    from j10ce.cli.prove.watching import LiveBars, ProgressLine

    wanted = [*KNOWN.values()] if scenario == ALL else [KNOWN[scenario]]
    wanted = [_served_by(server, one) for one in wanted if not server or not one.stage or scenario != ALL]
    wanted = [shortened(one) if quick else one for one in wanted]
    refuse_unprivileged()
    refuse_unwritable(folder)
    _ask(peers, yes=yes)
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE
    proofs = []
    for chosen in wanted:
        audience = LiveBars(columns) if quick else ProgressLine(chosen.name)
        try:
            proofs.append(run(chosen, rounds or chosen.rounds, seconds or chosen.seconds, audience, Client))
        except Unsupported as e:
            if len(wanted) == 1:
                raise
            warn(f"{chosen.name}: {e}")
            continue
        say()
        say(Verbatim(drawn(proofs[-1], columns)))
    written = write_files(folder, proofs)
    say(f"written: {', '.join(map(str, written))}")


def _served_by(server: str | None, scenario: Contest) -> Contest:
    from j10ce.bench.scenarios import with_redis

    if server and scenario.stage:
        raise click.UsageError(f"--with {server}: requests of {scenario.name} are of its own kind")
    return with_redis(scenario) if server else scenario


def _ask(peers: Peers, *, yes: bool) -> None:
    """Raises Busy where somebody would be disturbed and nobody says that it may be."""
    from j10ce.cli.prove.occupied import disturbed

    reasons = disturbed(peers)
    for reason in reasons:
        warn(f"j10ce-qos prove: {reason}")
    if not reasons or yes:
        return
    if not sys.stdin.isatty():
        raise Busy("others would be disturbed, and the figures by them; --yes goes on")
    click.confirm("Go on, and take all CPUs of this machine for two minutes?", abort=True, err=True)
