"""What was asked for and is not in force, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from j10ce.agent.ring.ring import Agent, Report
from j10ce.kernel.kernel import Kernel
from j10ce.model.knob import NODE, Setting, Value, read_names, render
from j10ce.model.plan import HeldSetting, ValueChange
from j10ce.model.snapshot import Snapshot
from j10ce.plan.rights import Rights


def unarmed(agent: Agent, unwritable: str) -> str:
    """Why nothing is written, and what to do about it; empty where everything is."""
    if agent.writes:
        return ""
    if unwritable:
        return f"the agent is read-only (not armed): {unwritable}"
    if agent.document.spec.disarmed:
        return "the agent is disarmed by its NodeQoS (spec.disarmed, or the label j10ce.io/ignore)"
    return "the agent is disarmed; `j10ce-qos arm`, by root or the agent's own user, lets it write again"


def absent_cpus(hold: HeldSetting, snap: Snapshot) -> str:
    """The CPUs of a held set that no cgroup here may run on; empty where there are none."""
    if not isinstance(hold.value, frozenset) or not (absent := hold.value - snap.node.cpus):
        return ""
    known, wanted = (render(hold.setting.knob, frozenset(cpus)) for cpus in (snap.node.cpus, absent))
    return f"CPU {wanted} is not there; cgroups of this machine may run on {known}"


def absent_devices(knobs: Sequence[str], snap: Snapshot) -> Iterator[str]:
    """Of each knob of one link or disk that this machine lacks, what there is."""
    numbers = {disk.name: number for number, disk in snap.node.disks.items()}
    for name in knobs:
        knob, at = next(iter(read_names(name)), ("", ""))
        if not at or at in snap.node.links or at in snap.node.disks:
            continue
        if knob.startswith(("net.", "link.")):
            yield f"{name} waits for a link {at}; here are {', '.join(snap.node.links) or 'none'}"
        elif at in numbers and knob.startswith("io."):
            yield f"{name} waits for a disk of that number; {at} is {Setting(NODE, knob, numbers[at]).name}"
        elif knob.startswith("io."):
            here = (f"{number} ({disk})" for disk, number in numbers.items())
            yield f"{name} waits for a disk {at}; here are {', '.join(here) or 'none'}"


def shortfalls(holds: Iterable[HeldSetting], report: Report, kernel: Kernel, unarmed: str) -> list[str]:
    """On the ring: every held value that is not in force, as it is and why. A target that is not here is none."""
    here = (h for h in holds if report.snap.groups.get(h.setting.target) is not None and h.value is not None)
    return [shortfall for h in here if (shortfall := _shortfall(h, report, kernel, unarmed))]


def _shortfall(hold: HeldSetting, report: Report, kernel: Kernel, unarmed: str) -> str:
    s, now = hold.setting, kernel.settings.get(hold.setting)
    if hold.value is None or now == kernel.quantise(s, hold.value):
        return ""
    return f"{s.knob} is {_shown(s.knob, now)}, not {_shown(s.knob, hold.value)}: {unarmed or _why(hold, report)}"


def _why(hold: HeldSetting, report: Report) -> str:
    s, verdict = hold.setting, report.plan.verdicts.get(hold.setting)
    if objection := Rights.of(report.snap).objection(s, report.snap):
        return objection
    refused = [r.reason for c, r in report.outcome.refused() if isinstance(c, ValueChange) and c.setting == s]
    if refused:
        return refused[0]
    if verdict and verdict.clamps:
        return verdict.clamps[-1]
    if verdict and verdict.held and verdict.value != hold.value:
        return f"it is held {verdict.held}, for longer"
    return "it is still being written"


def _shown(knob: str, value: Value | None) -> str:
    return "unknown" if value is None else render(knob, value)
