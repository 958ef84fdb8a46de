"""What came out, in a few sentences; and figures as people read them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from j10ce.bench.figures import Interval
from j10ce.bench.scenarios import LS, NO_QOS
from j10ce.bench.taken import Load
from j10ce.bench.verdict import Figures, Proof


def sentences(verdict: Proof) -> Iterator[str]:
    off, on = verdict.line(NO_QOS), verdict.line(LS)
    if off and on:
        yield f"p99 {ms(off.p99)} without QoS, {ms(on.p99)} with j10ce-qos ({LS})."
    best = min((line for line in verdict.lines if line.role == "ours"), key=lambda line: line.p99, default=None)
    if best and best.ratio:
        yield f"Best of ours: {best.arm}, {times(best.ratio)} of alone; machine {best.busy:.0%} busy."
    for line in verdict.lines:
        if line.unserved:
            yield f"{line.arm}: {line.unserved} requests were given up; they count as long as was waited for them."
    for missing in verdict.missing:
        yield f"Not measured: {missing.name}: {missing.why}."
    if verdict.noise:
        yield f"Too noisy to be relied on: {'; '.join(verdict.noise)}."


def ms(value: float) -> str:
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f} ms"


def times(ratio: Interval) -> str:
    return f"{_short(ratio.middle)} ({_short(ratio.low)} to {_short(ratio.high)})"


def _short(value: float) -> str:
    digits = 3 if value < 0.1 else 2
    return f"{value:.{digits}f}" if value < 10 else f"{value:,.0f}"


COLUMNS = (
    "arm",
    "p50",
    "p99",
    "p99.9",
    "p99 ÷ alone",
    "isolation",
    "worst s",
    "s > SLO",
    "busy",
    "BE ÷ free",
    "our cost",
    "refaults",
)
ASKED: Final[Mapping[str, str]] = {
    "rpc": "each asks a peer for 100 bytes",
    "read": "each reads a block of a disk",
    "pages": "each reads 16 pages of a working set",
    "redis": "each asks a redis-server for a list",
}


def asked(load: Load) -> str:
    """What a request is."""
    return ASKED.get(load.work, f"{load.cpu_us} µs of CPU time each")


def cells(line: Figures) -> tuple[str, ...]:
    cost = "" if line.cost_cpus is None else f"{line.cost_cpus:.1%} of a CPU, {line.cost_mib or 0:.0f} MiB"
    slo = "" if line.above_slo is None else "{} of {}".format(*line.above_slo)
    again = "" if line.refaults is None else f"{line.refaults:,}"
    return (
        line.arm, ms(line.p50), ms(line.p99), ms(line.p999), times(line.ratio) if line.ratio else "",
        share(line.isolation_mean), share(line.isolation_worst), slo, share(line.busy), share(line.filled), cost, again,
    )  # fmt: skip


def table(lines: Sequence[Figures]) -> list[tuple[str, ...]]:
    """The headings, then a row for each arm; without what nobody has."""
    rows = [COLUMNS, *map(cells, lines)]
    kept = [n for n in range(len(COLUMNS)) if any(row[n] for row in rows[1:])]
    return [tuple(row[n] for n in kept) for row in rows]


def share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"
