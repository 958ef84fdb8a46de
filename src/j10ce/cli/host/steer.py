"""hold, release, arm, disarm, revert: the operator's hand on the ring."""

from __future__ import annotations

from typing import Any

import click

from j10ce.cli.host.workloads import caller
from j10ce.cli.meant import suggesting
from j10ce.cli.output import say, table, warn
from j10ce.cli.paths import apart
from j10ce.cli.peers import REVERT_S, Peers, complete_knobs, complete_names, namespace_option, seconds
from j10ce.errors import NotFound
from j10ce.model.catalogue import KINDS
from j10ce.model.text.words import counted


@click.command("hold")
@click.argument("name", shell_complete=complete_names)
@click.argument("knobs", nargs=-1, required=True, shell_complete=complete_knobs)
@namespace_option
@click.option("--for", "span", default="1h", show_default=True, help="How long, such as 10m or 2h.")
@click.option("--why", required=True, help="The reason; shown to everyone who looks.")
@click.option("--value", help="Hold at this value; default: leave whatever is there.")
@click.option("--breaks-reservation", is_flag=True, help="Hold even though it cuts a promised floor.")
@click.pass_obj
def hold_command(
    peers: Peers, name: str, knobs: tuple[str, ...], namespace: str, span: str, why: str, value: str | None,
    breaks_reservation: bool,
) -> None:  # fmt: skip
    """Freeze settings of a workload: the agent leaves them alone until the hold expires.

    What there is once for each link, disk or cache takes its name or number in brackets; without it all are held.

    \b
    Example:
      j10ce-qos hold crunch cpu.max --for 10m --why "incident 42"
      j10ce-qos hold crunch net.egress.ceil[eth0] --why "backup runs"
    """
    on = target(namespace, name)
    request = {
        "target": on, "knobs": list(knobs), "forSeconds": seconds("--for", span),
        "why": why, "who": caller(), "breaksReservation": breaks_reservation,
    }  # fmt: skip
    agent = peers.agent()
    held = agent.post("/v1/holds", request if value is None else {**request, "value": value})
    say(f"{name} {' '.join(knobs)} held until {held['expires']}: {why}")
    for note in held["notes"]:
        warn(f"j10ce-qos hold: {note}")
    try:
        with suggesting(peers, KINDS["Workload"], namespace, name):
            agent.get("/v1/explain", target=on)
    except NotFound as e:
        warn(f"{e}{'' if str(e).endswith('?') else ';'} the hold waits for one; `j10ce-qos release {name}` ends it")


@click.command("release")
@click.argument("name", shell_complete=complete_names)
@click.argument("knobs", nargs=-1, shell_complete=complete_knobs)
@namespace_option
@click.pass_obj
def release_command(peers: Peers, name: str, knobs: tuple[str, ...], namespace: str) -> None:
    """End holds of a workload: all of them, or those on the named knobs.

    \b
    Example:
      j10ce-qos release crunch cpu.max
    """
    query = {"target": target(namespace, name), "knobs": ",".join(knobs)}
    released = sorted(set(peers.agent().delete("/v1/holds", **query)["released"]))
    if not released:
        raise NotFound(f"{name} has no hold on {' '.join(knobs) or 'anything'}; `j10ce-qos get holds` lists them")
    say(f"{name} {' '.join(released)} released")


@click.command("arm")
@click.pass_obj
def arm_command(peers: Peers) -> None:
    """Let the agent write again after `disarm`.

    \b
    Example:
      j10ce-qos arm
    """
    peers.agent().post("/v1/arm")
    say("armed: decisions are written")


@click.command("disarm")
@click.option("--revert", is_flag=True, help="Also put every original value back.")
@click.pass_obj
def disarm_command(peers: Peers, revert: bool) -> None:
    """The kill switch: stop all writes at once; values stay as they are.

    With --revert, a value that is held, or that someone else changed since, is left alone and reported; then the exit
    code is 1.

    \b
    Example:
      j10ce-qos disarm
    """
    agent = peers.agent(timeout=REVERT_S) if revert else peers.agent()
    done = agent.post("/v1/disarm", {"revert": revert})
    if revert:
        _tell_reverted(done)
    else:
        say("disarmed: nothing is written; values stay as they are")


@click.command("revert")
@click.option("--force", is_flag=True, help="Also restore values that are held or that someone else changed.")
@click.pass_obj
def revert_command(peers: Peers, force: bool) -> None:
    """Put every original value back, and disarm.

    A value that is held, or that someone else changed since, is left alone and reported; then the exit code is 1.

    \b
    Example:
      j10ce-qos revert
    """
    _tell_reverted(peers.revert(force))


def _tell_reverted(done: dict[str, Any]) -> None:
    """What is back and what is not; ends with 1 where a value was left alone."""
    left = [(r["setting"], r["reason"]) for r in done["left"]]
    removed = counted(done["removed"], "cgroup")
    say(f"{counted(done['restored'], 'setting')} restored, {len(left)} left alone, {removed} removed")
    if "armed" in done:  # an agent runs, and has done it
        say("disarmed: nothing is written until `j10ce-qos arm`")
    if left:
        say(table(["SETTING", "WHY IT IS LEFT"], left))
    if done["kept"]:
        say(table(["CGROUP", "WHY IT STAYS"], [(k["target"], k["reason"]) for k in done["kept"]]))
        say("the agent's own goes when it ends, others with the next `j10ce-qos revert` once nothing runs in them")
    if left:
        raise SystemExit(1)


def target(namespace: str, name: str) -> str:
    """What a user names: a workload, with or without its namespace, or a full target such as group/j10ce_besteffort."""
    if name.startswith(("group/", "part/")) or name == "node":
        return name
    return "workload/" + "/".join(apart(KINDS["Workload"], namespace, name.removeprefix("workload/")))
