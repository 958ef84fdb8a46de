"""Shows accounts to people: the debug page, in the layout of old, in a wide one, and as data.

The layout of old has its own formula: TTV = E/s − (E + W), without binding and without an overhead to expect.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from j10ce.scheduler.accounts.account import Incarnation, OwnerAccount
from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.accounts.duration import number, spelled
from j10ce.scheduler.accounts.measure import Measure, share

VERSION: Final = 1
NARROW: Final = (("CONTROLLER", 20), ("QOS/SLO", 9), ("TTV", 20), ("RUNNING", 20), ("WAITING", 20), ("BINDING", 20))
WIDE: Final = (
    *(("CONTROLLER", 20), ("QOS/SLO", 9), ("PREEMPTION OVERHEAD", 19), ("QOS APPROACH", 15), ("POD PHASE", 15)),
    *(("QOS METRIC", 15), ("EFF RUNNING", 20), ("DIS RUNNING", 20), ("WAITING", 20), ("BINDING", 20)),
)


def narrow(accounts: Accounts, now: float) -> str:
    """One line for each owner."""
    return _lines(NARROW, [_narrow_row(account, now) for account in accounts.sorted()])


def wide(accounts: Accounts, now: float) -> str:
    """One line for each slot that a pod has."""
    return _lines(WIDE, [_wide_row(*row) for row in _held(accounts, now)])


def data(accounts: Accounts, now: float) -> dict[str, Any]:
    """What both tables show, unrounded; what is no finite number is spelled as in the tables."""
    owners = [
        {
            "controller": account.identity.shown,
            "slo": account.identity.slo,
            "approach": account.identity.approach,
            "slots": account.identity.slots,
            "running": account.running,
            "pending": account.pending,
            "succeeded": account.succeeded,
            "ttv": _plain(_ttv(account, now)),
            "sums": _sums(account, now),
        }
        for account in accounts.sorted()
    ]
    return {"version": VERSION, "now": now, "controllers": owners, "pods": [_pod(*row) for row in _held(accounts, now)]}


def _held(accounts: Accounts, now: float) -> Iterator[tuple[OwnerAccount, Incarnation, Measure]]:
    for account in accounts.sorted():
        for slot in account.slots:
            if slot.holder is not None:
                yield account, slot.holder, account.measure(slot.holder, now, accounts.default_acceptable)


def _narrow_row(account: OwnerAccount, now: float) -> tuple[str, ...]:
    sums = account.sums(now)
    seconds = _ttv(account, now), sums.effective, sums.waiting, sums.binding
    return account.identity.shown, _achieved(sums.qos, account.identity.slo), *map(spelled, seconds)


def _ttv(account: OwnerAccount, now: float) -> float:
    sums = account.sums(now)
    return share(sums.effective, account.identity.slo) - (sums.effective + sums.waiting)


def _wide_row(account: OwnerAccount, it: Incarnation, measure: Measure) -> tuple[str, ...]:
    sums = measure.sums
    return (
        f"{account.identity.shown}-{it.slot.number}",
        _achieved(measure.qos, measure.slo),
        f"{number(measure.preemption_overhead, 2):>9}/{number(measure.acceptable, 2):<9}",
        it.identity.approach,
        it.pod.phase,
        number(measure.metric, 4),
        *map(spelled, (sums.effective, sums.discarded, sums.waiting, sums.binding)),
    )


def _achieved(qos: float, slo: float) -> str:
    return f"{number(qos, 2):>4}/{number(slo, 2):>4}"


def _lines(columns: Sequence[tuple[str, int]], rows: Sequence[tuple[str, ...]]) -> str:
    titles = tuple(title for title, _ in columns)
    widths = [width for _, width in columns]
    lines = ("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in (titles, *rows))
    return "".join(f"{line}\n" for line in lines)


def _sums(account: OwnerAccount, now: float) -> dict[str, float]:
    sums = account.sums(now)
    return {"effective": sums.effective, "waiting": sums.waiting, "binding": sums.binding, "qos": sums.qos}


def _pod(account: OwnerAccount, it: Incarnation, measure: Measure) -> dict[str, Any]:
    return {
        "controller": account.identity.shown,
        "slot": it.slot.number,
        "namespace": it.pod.namespace,
        "name": it.pod.name,
        "phase": it.pod.phase,
        "approach": it.identity.approach,
        "slo": measure.slo,
        "qos": measure.qos,
        "metric": _plain(measure.metric),
        "preemptionOverhead": _plain(measure.preemption_overhead),
        "acceptablePreemptionOverhead": measure.acceptable,
        **measure.sums._asdict(),
    }


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else number(value, 0)
