"""Arguments of QosAware, with their defaults. Durations are seconds here."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from j10ce.scheduler.accounts.accounts import Mode
from j10ce.scheduler.accounts.identity import DEFAULT_SLO

AdmissionRule: TypeAlias = Literal["off", "greedy", "predictive"]
PERIODS_S: Final = (600.0, 1500.0, 3600.0)


class QosSettings(NamedTuple):
    """`margin` and `hysteresis` of lazy mode are about laxity, those of classic mode about the metric."""

    mode: Mode = "lazy"
    slo: float = DEFAULT_SLO
    safety_margin_s: float = 0.0  # classic
    minimum_running_s: float = 0.0  # classic
    acceptable_overhead: float = 1.0
    periods_s: tuple[float, ...] = PERIODS_S  # when SLOs are to be met: each once from the start, the last for ever
    margin_s: float = 8.0  # lazy: who can wait no longer than this needs a node
    hysteresis_s: float = 12.0  # lazy: so much longer than it can a victim wait
    budget: float = 0.02  # lazy: of the capacity, what starts after preemptions may take
    admission: AdmissionRule = "off"
