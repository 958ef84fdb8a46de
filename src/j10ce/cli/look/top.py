"""top: what workloads use, beside what they were promised; live on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from j10ce.cli.look.live import Live
from j10ce.cli.output import dump, say, table
from j10ce.cli.peers import Peers, output_option
from j10ce.model.resource import spell

PERIOD_S: Final = 2.0
BAR: Final = 20  # characters
# Key: (what it sorts by, for the help line, the value; the largest first).
SORTS: Final = {
    "c": ("cpu", lambda w: -w["cpu"]),
    "m": ("memory", lambda w: -w["memory"]),
    "w": ("wait", lambda w: -(w["pressure"] or 0.0)),
    "n": ("name", lambda w: (w["namespace"], w["name"])),
}
# What is shown where somebody has some of it: measured rates, and what is promised of them.
RATES: Final = {
    "egress": ("NET-OUT", "network"),
    "ingress": ("NET-IN", "network"),
    "network": ("FLOOR-NET", "network"),
    "diskRead": ("DISK-READ", "diskRead"),
    "floorRead": ("FLOOR-READ", "diskRead"),
    "diskWrite": ("DISK-WRITE", "diskWrite"),
    "floorWrite": ("FLOOR-WRITE", "diskWrite"),
    "ioPressure": ("IO-WAIT", ""),
}
PROMISED: Final = {"network": "network", "floorRead": "diskRead", "floorWrite": "diskWrite"}
# How traffic gets on: what each is called, and how it is written.
FARES: Final[Mapping[str, tuple[str, Callable[[float], str]]]] = {
    "drops": ("DROPS/S", lambda n: f"{n:.0f}"),
    "retransmits": ("RESENT/S", lambda n: f"{n:.1f}"),
    "rtt": ("RTT", lambda s: f"{s * 1e3:.1f}ms"),
}
HELP: Final = "q quits; sort by " + ", ".join(f"{key} {name}" for key, (name, _) in SORTS.items())


@click.command("top")
@click.option("-w", "--watch", is_flag=True, help="Print again every two seconds until Ctrl-C, also into a pipe.")
@click.option("--once", is_flag=True, help="Print once, also on a terminal.")
@output_option
@click.pass_obj
def top_command(peers: Peers, watch: bool, once: bool, output: str) -> None:
    """Show what workloads use, beside what they were promised.

    On a terminal it is live: q quits, and c, m, w and n sort by CPU, memory, waiting and name. A floor that is not
    effective is shown with what is kept of it: 0/256Mi. WAIT is the share of time in which a task waited for a CPU (-
    before it is known), CAPPED the share in which its limit kept it from running, IO-WAIT that in which it
    waited for a disk. STATE is there while somebody has to give way: frozen, evicting, leaving. Rates of network and
    disks are there where somebody has some, packets dropped, segments of TCP sent again and its round trip, too.
    Where a workload suffers from another one, a second table says which, over what, what is done about it, and why it
    is thought so.

    \b
    Example:
      j10ce-qos top
    """
    wide, machine = output == "wide", output in ("json", "yaml")
    if not (once or machine) and sys.stdin.isatty() and sys.stdout.isatty():
        _live(peers, wide)
        return
    import time

    while True:
        usage = peers.agent().get("/v1/top")
        say(dump(usage, output) if machine else listing(usage, wide=wide))
        if not watch:
            return
        time.sleep(PERIOD_S)


def _live(peers: Peers, wide: bool) -> None:
    """Until q or Ctrl-C; a key that sorts shows at once, without asking the agent again."""
    order = "c"
    with Live() as screen:
        while True:
            usage = peers.agent().get("/v1/top")
            ends = screen.in_seconds(PERIOD_S)
            while True:
                screen.show(f"{listing(usage, wide=wide, order=order)}\n\n{HELP}")
                key = screen.key(ends)
                if key in ("q", "Q"):
                    return
                if not key:
                    break
                order = key if key in SORTS else order


def listing(usage: dict[str, Any], *, wide: bool, order: str = "c") -> str:
    """The node and a line per workload, as people read them."""
    headings = ["NAME", "PROFILE", "CPU", "FLOOR-CPU", "MEMORY", "FLOOR-MEM", "WAIT", "CAPPED"]
    states = any(w.get("state") for w in usage["workloads"])  # most of the time nobody has to go
    shown = [name for name in (*RATES, *FARES) if any(_has_rate(w, name) for w in usage["workloads"])]
    rows = [_row(w, wide, states, shown) for w in sorted(usage["workloads"], key=SORTS[order][1])]
    more = [*(_heading(name) for name in shown), *(["STATE"] if states else []), *(["TIER", "CGROUP"] if wide else [])]
    lines = table([*headings, *more], rows) if rows else "no workloads"
    return "\n\n".join([_node(usage["node"]), lines, *_interference(usage.get("interference", []))])


def _interference(pairs: list[dict[str, Any]]) -> list[str]:
    """Who suffers, who causes it, what is done; nothing where nobody does."""
    rows = [
        [_short(p["victim"]), _short(p["antagonist"]), p["resource"], p["action"], f"{p['suffering']}; {p['evidence']}"]
        for p in pairs
    ]
    return [table(["SUFFERS", "FROM", "OVER", "DONE", "WHY"], rows)] if rows else []


def _short(name: str) -> str:
    return name.removeprefix("default/")


def _node(node: dict[str, Any]) -> str:
    cpu = f"{spell('cpu', round(node['cpu'] * 1000))} of {node['cpus']}"
    memory = f"{spell('memory', node['memory'])} of {spell('memory', node['memoryTotal'])}"
    waiting = ", ".join(f"{name} {node['pressure'][name]:.0%}" for name in ("cpu", "memory", "io"))
    return (
        f"node {node['name']}, waiting for {waiting} of the time\n"
        f"cpu     {_bar(node['cpu'] / node['cpus'])}  {cpu}\n"
        f"memory  {_bar(node['memory'] / node['memoryTotal'])}  {memory}"
        + "".join(f"\n{_link(k)}" for k in node.get("links", ()))
        + "".join(f"\n{_disk(d)}" for d in node.get("disks", ()))
    )


def _link(k: dict[str, Any]) -> str:
    """As full as its fuller direction is."""
    out, into, whole = k["egress"], k["ingress"], k["capacity"]
    of = f" of {spell('network', whole)} each" if whole else "; its speed is unknown"
    share = max(out, into) / whole if whole else 0.0
    return f"{k['name']:<7} {_bar(share)}  {spell('network', out)} out, {spell('network', into)} in{of}"


def _disk(d: dict[str, Any]) -> str:
    """As full as it is busy."""
    read, written = (_of_disk(d[way], d[f"{way}Capacity"]) for way in ("read", "write"))
    return f"{d['name']:<7} {_bar(d['busy'] or 0.0)}  {read} read, {written} written"


def _of_disk(rate: float, capacity: int | None) -> str:
    return spell("diskRead", round(rate)) + (f" of {spell('diskRead', capacity)}" if capacity else "")


def _bar(share: float) -> str:
    full = round(min(1.0, max(0.0, share)) * BAR)
    return f"[{'#' * full}{'.' * (BAR - full)}]"


def _has_rate(w: dict[str, Any], name: str) -> bool:
    """Agents of earlier versions know none."""
    if name in FARES:
        return bool(w.get("traffic", {}).get(name))
    if name in PROMISED:
        return bool(w["floor"].get(PROMISED[name]))
    return bool(w.get(name) if name == "ioPressure" else w.get("rates", {}).get(name))


def _heading(name: str) -> str:
    return FARES[name][0] if name in FARES else RATES[name][0]


def _rate(w: dict[str, Any], name: str) -> str | None:
    if name in FARES:
        fares = w.get("traffic", {}).get(name)
        return None if fares is None else FARES[name][1](fares)
    if name in PROMISED:
        return _floor(PROMISED[name], w)
    if name == "ioPressure":
        return None if w.get(name) is None else f"{w[name]:.0%}"
    measured = w.get("rates", {}).get(name)
    return None if measured is None else spell(RATES[name][1], measured)


def _row(w: dict[str, Any], wide: bool, states: bool, shown: list[str]) -> list[object]:
    return [
        w["name"] if w["namespace"] == "default" else f"{w['namespace']}/{w['name']}",
        w["profile"],
        spell("cpu", round(w["cpu"] * 1000)),
        _floor("cpu", w),
        spell("memory", w["memory"]),
        _floor("memory", w),
        None if w["pressure"] is None else f"{w['pressure']:.0%}",
        f"{w['throttled']:.0%}",
        *(_rate(w, name) for name in shown),
        *([w.get("state") or None] if states else []),
        *([w["tier"], w["cgroup"]] if wide else []),
    ]


def _floor(resource: str, w: dict[str, Any]) -> str | None:
    """`500m`, or `0/500m` where less of it is kept than was promised."""
    promised = w["floor"].get(resource, 0)  # agents of earlier versions know two resources
    kept = (w["effective"] or w["floor"]).get(resource, promised)
    if not promised:
        return None
    return "/".join(spell(resource, amount) for amount in ([kept] if kept < promised else []) + [promised])
