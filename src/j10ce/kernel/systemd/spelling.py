"""How a knob is spelled as a property of a systemd unit. Read beside cgroup/v2.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from j10ce.kernel.cgroup.spelling import number
from j10ce.kernel.systemd.dbus import Typed
from j10ce.kernel.systemd.units import UNSET
from j10ce.model.knob import (
    IDLE_SHARES,
    KNOBS,
    PERIOD_US,
    Setting,
    Value,
    format_cpus,
    parse_cpus,
    shares_of,
    weight_of,
)

Raw = int | str  # a property as the journal keeps it: a set of CPUs is text

_SECOND_US: Final = 1_000_000
_IDLE: Final = 0


class Property(NamedTuple):
    name: str
    drop_in: str  # systemd keeps it in 50-<drop_in>.conf
    unset: Raw  # what a unit without it says
    spell: Callable[[Value], Raw]
    parse: Callable[[Raw], Value]

    def typed(self, raw: Raw) -> Typed:
        return Typed("ay", _mask(parse_cpus(raw))) if isinstance(raw, str) else Typed("t", raw)

    def raw(self, said: object) -> Raw:
        """As systemd answers: a number, or a bit mask."""
        return format_cpus(_cpus(said)) if isinstance(said, bytes) else int(str(said))


def _number(name: str, *, unset: int) -> Property:
    return Property(
        name,
        name,
        unset,
        lambda v: UNSET if number(v) == math.inf else int(number(v)),
        lambda raw: math.inf if raw == UNSET else float(raw),
    )


def _weight(raw: Raw) -> Value:
    if raw == UNSET:
        return KNOBS["cpu.weight"].default
    return IDLE_SHARES if raw == _IDLE else shares_of(int(raw))


def _set(v: Value) -> Raw:
    if not isinstance(v, frozenset):
        raise TypeError(f"{v!r} is no set of CPUs")
    return format_cpus(v)


TABLE: Final[Mapping[str, Property]] = {
    "cpu.weight": Property("CPUWeight", "CPUWeight", UNSET, lambda v: weight_of(number(v)), _weight),
    "cpu.idle": Property(
        "CPUWeight", "CPUWeight", UNSET, lambda v: _IDLE if number(v) else UNSET, lambda raw: float(raw == _IDLE)
    ),
    "cpu.max": Property(
        "CPUQuotaPerSecUSec",
        "CPUQuota",
        UNSET,
        lambda v: UNSET if number(v) == math.inf else int(number(v)) * _SECOND_US // PERIOD_US,
        lambda raw: math.inf if raw == UNSET else float(raw) * PERIOD_US / _SECOND_US,
    ),
    "cpuset.cpus": Property("AllowedCPUs", "AllowedCPUs", "", _set, lambda raw: parse_cpus(str(raw))),
    "memory.min": _number("MemoryMin", unset=0),
    "memory.low": _number("MemoryLow", unset=0),
    "memory.high": _number("MemoryHigh", unset=UNSET),
    "memory.max": _number("MemoryMax", unset=UNSET),
}


def properties(wanted: Mapping[Setting, Value]) -> dict[str, Typed]:
    """The settings of one unit as its properties; those that systemd has no property for are left out.

    cpu.weight and cpu.idle are one property: a unit that is not idle has the weight that comes with it.
    """
    by_knob = {s.knob: v for s, v in wanted.items() if s.knob in TABLE}
    if "cpu.weight" in by_knob and "cpu.idle" in by_knob:
        del by_knob["cpu.weight" if by_knob["cpu.idle"] else "cpu.idle"]
    return {TABLE[k].name: TABLE[k].typed(TABLE[k].spell(v)) for k, v in by_knob.items()}


def _mask(cpus: frozenset[int]) -> bytes:
    """Lowest byte first."""
    bits = sum(1 << cpu for cpu in cpus)
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def _cpus(mask: bytes) -> frozenset[int]:
    bits = int.from_bytes(mask, "little")
    return frozenset(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)
