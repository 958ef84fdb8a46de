"""hold, release, arm, disarm, revert: the operator's hand on the ring."""

from __future__ import annotations

import click

from j10ce.cli.output import say, table, warn
from j10ce.cli.peers import Peers, complete_knobs, complete_names, namespace_option
from j10ce.cli.place import caller
from j10ce.errors import NotFound
from j10ce.model.quantity import Duration


@click.command("hold")
@click.argument("name", shell_complete=complete_names)
@click.argument("knobs", nargs=-1, required=True, shell_complete=complete_knobs)
@namespace_option
@click.option("--for", "span", default="1h", show_default=True, help="How long, such as 10m or 2h.")
@click.option("--why", required=True, help="Why; shown to everyone who asks.")
@click.option("--value", help="Hold at this value; default: leave whatever is there.")
@click.option("--breaks-reservation", is_flag=True, help="Hold even though it cuts a promised floor.")
@click.pass_obj
def hold_command(
    peers: Peers, name: str, knobs: tuple[str, ...], namespace: str, span: str, why: str, value: str | None,
    breaks_reservation: bool,
) -> None:  # fmt: skip
    """Freeze settings of a workload: we keep our hands off until the hold expires.

    \b
    Example:
      j10ce-qos hold crunch cpu.max --for 10m --why "incident 42"
    """
    on = target(namespace, name)
    told = {
        "target": on, "knobs": list(knobs), "forSeconds": Duration.parse(span).seconds,
        "why": why, "who": caller(), "breaksReservation": breaks_reservation,
    }  # fmt: skip
    agent = peers.agent()
    held = agent.post("/v1/holds", told if value is None else {**told, "value": value})
    say(f"{name} {' '.join(knobs)} held until {held['expires']}: {why}")
    try:
        agent.get("/v1/explain", target=on)
    except NotFound:
        warn(f"there is no {on} here; the hold waits for one")


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

    \b
    Example:
      j10ce-qos disarm
    """
    peers.agent().post("/v1/disarm", {"revert": revert})
    say("disarmed: nothing is written" + ("; original values are back" if revert else "; values stay as they are"))


@click.command("revert")
@click.option("--force", is_flag=True, help="Also settings under a hold.")
@click.pass_obj
def revert_command(peers: Peers, force: bool) -> None:
    """Put every original value back, and disarm.

    A value that someone else changed since is left alone and reported.

    \b
    Example:
      j10ce-qos revert
    """
    done = peers.revert(force)
    left = [(r["setting"], r["reason"]) for r in done["left"]]
    say(f"{done['restored']} settings restored, {len(left)} left alone")
    if left:
        say(table(["SETTING", "WHY IT IS LEFT"], left))
    if done["kept"]:
        say(table(["CGROUP", "WHY IT STAYS"], [(k["target"], k["reason"]) for k in done["kept"]]))


def target(namespace: str, name: str) -> str:
    """What a user names: a workload, or a full target such as group/j10ce_besteffort."""
    return (
        name if name.startswith(("workload/", "group/", "part/")) or name == "node" else f"workload/{namespace}/{name}"
    )
