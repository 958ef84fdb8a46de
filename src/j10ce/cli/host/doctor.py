"""doctor: what this machine can enforce, what is missing, and how to get it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import click

from j10ce.cli.output import dump, say, table
from j10ce.cli.peers import OneOf, Peers, output_option
from j10ce.errors import Denied, Unreachable
from j10ce.model.knob import KNOBS

# What features of one area are called.
AREAS: Final[Mapping[str, tuple[str, ...]]] = {
    "cpu": ("cpu", "sched", "kernel.sched"),
    "memory": ("memory", "mm.", "vm.", "oom", "reclaim"),
    "network": ("link.", "net."),
    "disk": ("io.", "disk"),
}
# What may be all that a feature needs, which nobody can tell who has them not.
RIGHTS: Final = re.compile(r"\broot\b|\bCAP_|\bcapabilit")


@click.command("doctor")
@click.argument("area", required=False, type=OneOf([*AREAS]))
@output_option
@click.pass_obj
def doctor_command(peers: Peers, area: str | None, output: str) -> None:
    """Show what this machine can enforce, what is missing and how to get it. No agent is needed.

    With an area (cpu, memory, network, disk) only what concerns it; for the network also every link that a running
    agent knows: what it carries, and whether its traffic is divided. For disks it says of each what it can do, how
    floors are kept there, what a better way needs, and on which file systems write-back is charged to nobody.

    \b
    Example:
      j10ce-qos doctor
      j10ce-qos doctor network
    """
    report = examine()
    if area == "disk":
        report["disks"] = disks_here(report["capabilities"])
    try:
        answer = peers.agent(timeout=5.0).get("/v1/doctor")
        report |= {"notes": answer["notes"], "links": answer.get("links")}
        if area is not None:  # what only an agent can try, such as queueing on a link
            known = {c["feature"] for c in report["capabilities"]}
            report["capabilities"] += [c for c in answer["capabilities"] if c["feature"] not in known]
    except (Unreachable, Denied):
        pass  # the machine is examined from here; the agent only adds what it noticed
    if area is not None:
        report = of_area(report, area)
    else:
        report.pop("links", None)
    say(dump(report, output) if output in ("json", "yaml") else long_doctor(report))


def of_area(report: dict[str, Any], area: str) -> dict[str, Any]:
    """Without what does not concern it; with its links, which an agent knows, or its disks."""
    concern = [c for c in report["capabilities"] if c["feature"].startswith(AREAS[area])]
    always = [c for c in report["capabilities"] if c["feature"] == "privileges"]
    links = {"links": report.get("links")} if area == "network" else {}
    disks = {"disks": report["disks"]} if area == "disk" and "disks" in report else {}
    return {"capabilities": [*concern, *always], **links, **disks}


def disks_here(capabilities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As far as this process sees them; what a NodeStrategy says of them only an agent knows."""
    from j10ce.cli.dirs import Dirs
    from j10ce.control.disk.ways import listed
    from j10ce.host.disks import discover
    from j10ce.host.mounts import Hierarchies
    from j10ce.observe.calibrations import Calibrations

    disks = discover(charged=Hierarchies.discover().version("io") == 2)
    known = Calibrations(Dirs.here().state).seen(disks)
    return listed(known, {c["feature"] for c in capabilities if c.get("ok")})


def examine() -> dict[str, Any]:
    """The agent's own examination, made in this process."""
    from j10ce.host.topology import of_this_machine
    from j10ce.kernel.probe import examine as probe
    from j10ce.model.machine import topology
    from j10ce.model.schema import plain

    return {"capabilities": [plain(c) for c in probe()], "topology": plain(topology.report(of_this_machine()))}


def long_doctor(report: dict[str, Any]) -> str:
    """What works and through what; what does not, what is done instead, and how to get it."""
    caps = report["capabilities"]
    rows = [[c["feature"], *(("ok", c.get("via")) if c.get("ok") else ("missing", c.get("instead")))] for c in caps]
    return "\n".join(
        [
            table(["FEATURE", "STATE", "THROUGH, OR INSTEAD"], rows),
            *_missing(caps),
            *_links(report),
            *_disks(report),
            *_topology(report),
            *report.get("notes", ()),
            _verdict(caps),
        ]
    )


def short_doctor(report: dict[str, Any], *, privileged: bool) -> str:
    """One line of what works, one per reason why something does not; what no mainline kernel has is not missing."""
    rare = {name for name, knob in KNOBS.items() if knob.rare}
    caps = [c for c in report["capabilities"] if c.get("ok") or c["feature"] not in rare]
    good = ", ".join(c["feature"] for c in caps if c.get("ok"))
    able = "can enforce" if privileged else "could enforce as root"
    lines = [f"{able}: {good or 'nothing'}", *_missing(caps)]
    return "\n".join([*lines, *(["`j10ce-qos doctor` says what is done instead"] if len(lines) > 1 else [])])


def _missing(caps: list[dict[str, Any]]) -> list[str]:
    """Features with the same need share a line."""
    needs: dict[str, list[str]] = {}
    for c in caps:
        if not c.get("ok"):
            needs.setdefault(c.get("needs") or "something that this kernel has not", []).append(c["feature"])
    return [f"missing: {', '.join(features)}: needs {need}" for need, features in needs.items()]


def _links(report: dict[str, Any]) -> list[str]:
    if "links" not in report:
        return []
    links = report["links"]
    if links is None:
        return ["the links of this machine are an agent's to know, and none answers"]
    rows = [[k["name"], k["kind"], k["capacity"], "yes" if k["managed"] else "no", k["divided"]] for k in links]
    return [table(["LINK", "KIND", "CAPACITY", "MANAGED", "DIVIDED"], rows)] if rows else ["no links"]


def _disks(report: dict[str, Any]) -> list[str]:
    if "disks" not in report:
        return []
    disks = report["disks"]
    rows = [[d["name"], d["number"], d["capacity"], "yes" if d["managed"] else "no", d["floors"]] for d in disks]
    return [
        table(["DISK", "NUMBER", "CAPACITY", "MANAGED", "FLOORS BY"], rows) if rows else "no disks",
        *(f"{d['name']}: {_for_floors(d)}" for d in disks if d["needs"]),
        *(
            f"{d['name']}: write-back on {', '.join(d['uncharged'])} is charged to nobody"
            for d in disks
            if d["uncharged"]
        ),
    ]


def _for_floors(disk: dict[str, Any]) -> str:
    """Caps on others keep floors on any disk that was measured; weights need more."""
    first, *more = disk["needs"]
    if disk["floors"] != "none" or "calibrate" not in first:
        return f"for floors by weight it needs {'; '.join(disk['needs'])}"
    also = f"; for those by weight also {'; '.join(more)}" if more else ""
    return f"for floors it needs {first}{also}"


def _topology(report: dict[str, Any]) -> list[str]:
    from j10ce.model.machine.topology import in_words
    from j10ce.model.parts.totals import TopologyReport
    from j10ce.model.schema import convert

    topology = report.get("topology")
    return [f"CPUs: {in_words(convert(topology, TopologyReport))}"] if topology else []


def _verdict(caps: list[dict[str, Any]]) -> str:
    able = f"{sum(bool(c.get('ok')) for c in caps)} of {len(caps)} features"
    if _privileged(caps):
        return f"{able} work here"
    rights = sum(not c.get("ok") and bool(RIGHTS.search(c.get("needs") or "")) for c in caps)
    more = f", and {rights} more if rights are all that they need" if rights else ""
    return f"nothing is enforced for this user; as root {able} would be{more}"


def _privileged(caps: list[dict[str, Any]]) -> bool:
    """Without privileges nothing is written, whatever the kernel could do."""
    return all(c.get("ok") for c in caps if c["feature"] == "privileges")
