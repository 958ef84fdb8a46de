"""What is logged of a pod that has left its slot: one line of comma-separated values."""

from __future__ import annotations

from typing import Final

from j10ce.scheduler.accounts.accounts import Departure
from j10ce.scheduler.accounts.duration import number

COLUMNS: Final = (
    *("time", "pod", "controller", "slo", "slot", "approach", "created"),
    *("waiting_ms", "binding_ms", "running_ms", "succeeded", "qos", "metric"),
    *("controller_waiting_ms", "controller_binding_ms", "controller_effective_ms", "controller_discarded_ms"),
)


def line(departure: Departure) -> str:
    it, measure, at = departure.incarnation, departure.measure, departure.at
    clock, sums = it.clock, measure.sums
    return ",".join(
        (
            *(str(int(at)), _quoted(it.pod.name), _quoted(departure.account.identity.shown), number(measure.slo, 6)),
            *(str(it.slot.number), it.identity.approach, str(int(clock.created))),
            *(_ms(clock.waiting(at)), _ms(clock.binding(at)), _ms(clock.running(at))),
            *("true" if departure.succeeded else "false", number(measure.qos, 6), number(measure.metric, 6)),
            *(_ms(sums.waiting), _ms(sums.binding), _ms(sums.effective), _ms(sums.discarded)),
        )
    )


def _ms(seconds: float) -> str:
    return str(int(seconds * 1000))


def _quoted(text: str) -> str:
    """A key is whatever an annotation says."""
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text
