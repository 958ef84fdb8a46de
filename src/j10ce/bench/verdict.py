"""What a run says: a line of figures for each arm, what was missing, and whether the machine was quiet enough. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from j10ce.bench.figures import Interval, above, isolation, of_rounds, ratio, worst_by_second
from j10ce.bench.taken import ALONE, Arm, Load, Missing, Role, Taken

FORMAT: Final = 1  # of prove.json
MS: Final = 1e3
MOST_SPREAD: Final = 1.5  # of the rounds alone, and of an interval of ours
MOST_OTHERS: Final = 0.05
SLO: Final = 1.2  # times the worst second alone


class Figures(Struct, frozen=True, kw_only=True, rename="camel"):
    """An arm: times in ms, shares between 0 and 1, and what was not measured is null."""

    arm: str
    means: str
    role: Role
    p50: float
    p99: float
    p999: float
    p99_by_second: Sequence[float]
    busy: float
    ratio: Interval | None = None  # of p99 to that of the service alone
    ratio_p999: Interval | None = None
    isolation_mean: float | None = None
    isolation_worst: float | None = None  # 1st percentile of the seconds
    above_slo: tuple[int, int] | None = None  # seconds with p99 above 1.2 × the worst one alone, of all
    filled: float | None = None
    cost_cpus: float | None = None
    cost_mib: float | None = None
    unserved: int = 0
    served: float = 0.0  # requests a second, in time
    refaults: float | None = None  # of a round


class Proof(Struct, frozen=True, kw_only=True, rename="camel"):
    """The whole of a run, as prove.json has it."""

    format: int = FORMAT
    scenario: str
    asks: str
    machine: str
    rounds: int
    load: Load
    lines: Sequence[Figures]
    missing: Sequence[Missing] = ()
    noise: Sequence[str] = field(default_factory=tuple)

    def line(self, arm: str) -> Figures | None:
        return next((line for line in self.lines if line.arm == arm), None)


def judge(arms: Sequence[Arm], taken: Mapping[str, Sequence[Taken]]) -> tuple[list[Figures], list[str]]:
    """(a line for each arm that was measured, why the run is too noisy: empty where it is not)."""
    alone = [t.seconds for t in taken.get(ALONE, ())]
    lines = [_line(arm, taken[arm.name], alone) for arm in dict.fromkeys(arms) if arm.name in taken]
    return lines, [*_noise(lines, taken, alone)]


def _line(arm: Arm, taken: Sequence[Taken], alone: Sequence[Sequence[Sequence[float]]]) -> Figures:
    rounds = [t.seconds for t in taken]
    compared = bool(alone) and arm.name != ALONE
    mean, worst = isolation(rounds, alone) if compared else (None, None)
    return Figures(
        above_slo=above(rounds, alone, SLO) if compared else None,
        arm=arm.name, means=arm.means, role=arm.role,
        p50=of_rounds(rounds, 0.5) * MS, p99=of_rounds(rounds, 0.99) * MS, p999=of_rounds(rounds, 0.999) * MS,
        p99_by_second=[p99 * MS for p99 in worst_by_second(rounds)],
        ratio=ratio(rounds, alone) if compared else None,
        ratio_p999=ratio(rounds, alone, 0.999) if compared else None,
        isolation_mean=mean, isolation_worst=worst,
        busy=statistics.median(t.busy for t in taken),
        filled=_median([t.filled for t in taken]), cost_cpus=_median([t.cost for t in taken]),
        cost_mib=_median([t.mib for t in taken]), unserved=sum(t.unserved for t in taken),
        served=statistics.median(t.served for t in taken), refaults=_median([t.refaults for t in taken]),
    )  # fmt: skip


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _noise(
    lines: Sequence[Figures], taken: Mapping[str, Sequence[Taken]], alone: Sequence[Sequence[Sequence[float]]]
) -> Iterator[str]:
    others = statistics.median(t.others for rounds in taken.values() for t in rounds)
    if others > MOST_OTHERS:
        yield f"other processes used {others:.0%} of the machine; {MOST_OTHERS:.0%} is little enough"
    p99s = sorted(of_rounds([r], 0.99) * MS for r in alone)
    if p99s and p99s[-1] > MOST_SPREAD * p99s[0]:
        yield f"alone, p99 was {p99s[0]:.2f} ms in one round and {p99s[-1]:.2f} ms in another"
    for line in lines:
        if line.role == "ours" and line.ratio and line.ratio.high > MOST_SPREAD * line.ratio.low:
            yield f"{line.arm}: p99 is {line.ratio.low:.2f} to {line.ratio.high:.2f} of alone, which is no answer"
