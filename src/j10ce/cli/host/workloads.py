"""run, adopt, forget: what joins and leaves the managed workloads of this host."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import click

from j10ce.cli.amounts import BITS, BYTE_RATE, CPU, MEMORY
from j10ce.cli.host.gate import FAILED, KILLED, run_placed
from j10ce.cli.meant import suggesting
from j10ce.cli.output import report, say, warn
from j10ce.cli.paths import apart
from j10ce.cli.peers import Peers, complete_names, complete_profiles, namespace_option
from j10ce.daemon.lock import holder
from j10ce.errors import Denied, NotFound, QosError, Unreachable
from j10ce.model.catalogue import KINDS
from j10ce.policy.profiles import canonical

# What other tools take, and what does it here.
INSTEAD: Final = dict.fromkeys(("-d", "--detach"), "write & after the command, which goes on in the background.") | {
    "-p": "did you mean '--profile'?",
    "--dry-run": "`j10ce-qos plan -f FILE` shows what would be written for a Workload in a file.",
    "--cpus": "did you mean '--cpu'?",
    "-m": "did you mean '--memory'?",
}


class Label(click.ParamType[tuple[str, str]]):
    def __init__(self, name: str = "label") -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        key, equals, text = str(value).partition("=")
        if not key or not equals:
            self.fail(f"{value!r} is no {self.name}; write KEY=VALUE, such as app=web", param, ctx)
        return key, text


class Run(click.Command):
    """Who knows `docker run` or `systemd-run` hears what does here what an option does there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as e:
            if e.option_name not in INSTEAD:
                raise
            raise click.UsageError(f"No such option {e.option_name!r}; {INSTEAD[e.option_name]}", ctx) from None


anyway_option = click.option(
    "--best-effort-minimum", "anyway", is_flag=True, help="Go on even if this machine cannot give the minimum."
)
profile_option = click.option(
    "--profile",
    default="",
    shell_complete=complete_profiles,
    help="QoS profile, such as ls or be; default: by its labels, else burstable.",
)

MINIMUM: Final = {  # option -> resource, how it is written, help
    "--min-cpu": ("cpu", CPU, "CPUs, such as 500m"),
    "--min-memory": ("memory", MEMORY, "memory, such as 512Mi"),
    "--min-network": ("network", BITS, "what is sent and what is received, such as 200Mbit"),
    "--min-disk-read": ("diskRead", BYTE_RATE, "bytes a second read, such as 50M"),
    "--min-disk-write": ("diskWrite", BYTE_RATE, "bytes a second written, such as 20M"),
}


def minimum_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What a workload is promised, one option per resource."""
    for option, (_, kind, text) in reversed(MINIMUM.items()):
        command = click.option(option, type=kind, help=f"Minimal reservation: {text}.")(command)
    return command


@click.command("run", cls=Run, context_settings={"allow_interspersed_args": False})
@profile_option
@click.option("--name", help="Name of the workload; default: the command's, numbered.")
@namespace_option
@click.option("--label", "labels", multiple=True, type=Label(), metavar="KEY=VALUE", help="Label of the workload.")
@click.option(
    "--annotation",
    "annotations",
    multiple=True,
    type=Label("annotation"),
    metavar="KEY=VALUE",
    help="Annotation of the workload.",
)
@minimum_options
@click.option("--cpu", "cpu_limit", type=CPU, help="CPU limit, such as 1500m.")
@click.option("--memory", "memory_limit", type=MEMORY, help="Memory limit, such as 1Gi.")
@click.option("--network", "network_limit", type=BITS, help="Limit of what is sent and of what is received: 50Mbit.")
@click.option("--disk-read", "disk_read_limit", type=BYTE_RATE, help="Bytes a second read from each disk, such as 50M.")
@click.option("--disk-write", "disk_write_limit", type=BYTE_RATE, help="Bytes a second written to each disk.")
@click.option("--request-cpu", type=CPU, help="CPU request (percentages of a profile refer to it).")
@click.option("--request-memory", type=MEMORY, help="Memory request.")
@anyway_option
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def run_command(peers: Peers, /, command: tuple[str, ...], quiet: bool, anyway: bool, **options: Any) -> None:
    """Run a command as a managed workload.

    The command is inside its cgroup, with every knob written, before its first instruction. Signals and the terminal
    are passed on; the exit code is the command's own. If no agent is running, one is started for as long as needed.
    If this machine cannot give the minimum, the command does not start.

    \b
    Example:
      j10ce-qos run --profile ls --name web --min-cpu 500m -- python3 -m http.server 8080
    """
    placed: dict[str, Any] = {}

    def place(pid: int) -> None:
        placed.update(_ask(peers, "/v1/workloads", _request(pid, command, options)))
        _insist_on_minimum(placed, anyway=anyway)
        for note in _notes(placed):
            warn(f"j10ce-qos run: {note}")
        if not quiet and placed["armed"]:
            where = placed["cgroup"] or "no cgroup of its own: its labels say that it is ignored"
            warn(f"j10ce-qos run: {placed['namespace']}/{placed['name']} in {where}")

    try:
        code = run_placed(command, place)
    except QosError as e:
        report(e)
        code = FAILED
    if placed:
        if code == KILLED:
            _tell_of_limit(placed)
        _leave(peers, placed)
    raise SystemExit(code)


@click.command("adopt")
@click.option(
    "--pid", type=int, help="A process; its service or container is adopted, or else the process with its children."
)
@click.option("--unit", help="A systemd unit.")
@click.option("--cgroup", help="A cgroup, relative to the root of the hierarchy.")
@click.option("--name", help="Name of the workload; default: from the unit or cgroup.")
@namespace_option
@profile_option
@minimum_options
@anyway_option
@click.pass_obj
def adopt_command(
    peers: Peers, /, pid: int | None, unit: str | None, cgroup: str | None, anyway: bool, **options: Any
) -> None:
    """Manage what already runs: a process, a systemd unit, or a cgroup.

    \b
    Example:
      j10ce-qos adopt --unit redis-server.service --profile ls
    """
    given = {k: v for k, v in (("pid", pid), ("unit", unit), ("cgroup", cgroup)) if v is not None}
    if len(given) != 1:
        raise click.UsageError("give exactly one of --pid, --unit, --cgroup")
    placed = _ask(peers, "/v1/adopt", {**given, **_common(options), "insist": not anyway})
    for note in _notes(placed):
        warn(f"j10ce-qos adopt: {note}")
    where = f"adopted in {placed['cgroup']}" if placed["armed"] else "is listed, and stays in the cgroup that it is in"
    say(f"{placed['namespace']}/{placed['name']} {where}")


@click.command("forget")
@click.argument("name", shell_complete=complete_names)
@namespace_option
@click.pass_obj
def forget_command(peers: Peers, name: str, namespace: str) -> None:
    """Stop managing a workload and restore its settings; its processes keep running.

    Processes that `run` or `adopt --pid` moved into one of our cgroups stay there, without QoS; the cgroup is removed
    with its last process.

    \b
    Example:
      j10ce-qos forget redis-server
    """
    namespace, name = apart(KINDS["Workload"], namespace, name)
    with suggesting(peers, KINDS["Workload"], namespace, name):
        peers.agent().delete(_where({"namespace": namespace, "name": name}))
    say(f"{namespace}/{name} forgotten")


def _ask(peers: Peers, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The host's agent does it. Where there is none one is started, and stays as long as it has workloads."""
    _make_sure_of_agent(peers)
    try:
        answer: dict[str, Any] = peers.agent().post(path, body)
    except Unreachable:  # it was just ending, or handing over to another one
        _make_sure_of_agent(peers)
        answer = peers.agent().post(path, body)
    return answer


def _make_sure_of_agent(peers: Peers) -> None:
    if peers.agent_answers():
        return
    from j10ce.cli.host.launch import START_S, lend_agent

    try:
        lend_agent(peers.dirs)
    except QosError:
        # Someone else may have started one at the same moment; then that one serves us too.
        ends = time.monotonic() + START_S
        while not peers.agent_answers():
            if time.monotonic() > ends or not holder(peers.dirs.run)[0]:
                raise
            time.sleep(0.05)


def _request(pid: int, command: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    base = os.path.basename(command[0]).lower()
    safe = "".join(c if c.isascii() and c.isalnum() else "-" for c in base).strip("-")[:40] or "command"
    limits = {
        "cpu": options["cpu_limit"],
        "memory": options["memory_limit"],
        "network": options["network_limit"],
        "diskRead": options["disk_read_limit"],
        "diskWrite": options["disk_write_limit"],
    }
    requests = {"cpu": options["request_cpu"], "memory": options["request_memory"]}
    return {
        **_common({**options, "name": options["name"] or f"{safe}-{pid}"}),
        "pid": pid,
        "labels": dict(options["labels"]),
        **({"annotations": dict(options["annotations"])} if options["annotations"] else {}),
        "limits": {k: v for k, v in limits.items() if v},
        "requests": {k: v for k, v in requests.items() if v},
    }


def _common(options: dict[str, Any]) -> dict[str, Any]:
    minimum = {resource: options[name[2:].replace("-", "_")] for name, (resource, _, _) in MINIMUM.items()}
    named = {"name": options["name"], "namespace": options["namespace"], "profile": canonical(options["profile"])}
    return {**{k: v for k, v in named.items() if v}, "minimum": {k: v for k, v in minimum.items() if v}}


def _insist_on_minimum(placed: dict[str, Any], *, anyway: bool) -> None:
    """--min-cpu and its sisters are a promise: what cannot be promised is not started."""
    if placed["unmet"] and not anyway:
        why = "; ".join(placed["unmet"])
        raise Denied(f"{placed['namespace']}/{placed['name']} is not started: {why}; --best-effort-minimum goes on")


def _notes(placed: dict[str, Any]) -> list[str]:
    """What else there is to say, every reason once."""
    others = placed.get("otherNotes", placed["notes"])  # agents of earlier versions do not tell them apart
    return [*others, *(f"minimum not upheld: {why}" for why in placed["unmet"])]


def _tell_of_limit(placed: dict[str, Any]) -> None:
    """Before the cgroup goes: whoever sees no more than a code looks for the mistake elsewhere."""
    from j10ce.cli.host.memory_kill import limit_that_killed

    if placed["cgroup"] and (limit := limit_that_killed(placed["cgroup"])):
        warn(
            f"j10ce-qos run: {placed['namespace']}/{placed['name']} was killed: it reached its memory limit of {limit}"
        )


def _leave(peers: Peers, placed: dict[str, Any]) -> None:
    """Tell the agent at once; it would notice the empty cgroup by itself a little later."""
    try:
        peers.agent().delete(_where(placed), ended="1")
    except (NotFound, Unreachable):
        return  # the agent has seen the end itself, or will at its next start


def _where(placed: dict[str, Any]) -> str:
    return "/v1/workloads/" + "/".join(quote(placed[part], safe="") for part in ("namespace", "name"))


def caller() -> str:
    """Who types, for holds: the user behind sudo, if any."""
    return os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
