"""Which law holds on this node, and how it is kept: what the controller is configured to, and the strategy over it.

A threshold that is said leaves its headroom itself: the others count by their median, and what they give back is lent
again within seconds. A buffer is kept free on top of the most that they used within a minute.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from j10ce.control.cpu.suppression.room import Law
from j10ce.model.parts.strategy import SuppressSection
from j10ce.model.quantity import Duration

Mode = Literal["auto", "quota", "cpuset", "buffer"]
QUICK: Final[dict[str, Any]] = {"quantile": 0.5, "window": Duration(20), "calm": Duration(3), "grow": 1.0}
PEAK: Final[dict[str, Any]] = {
    "ceiling": 1.0,
    "quantile": 1.0,
    "window": Duration(60),
    "calm": Duration(10),
    "grow": 1.0,
    "prompt": True,
}


class SuppressTerms(NamedTuple):
    law: Law
    by: Literal["quota", "cpuset"]
    stands_back: bool  # where being idle is enough
    whole: bool = False  # a part of a CPU is not lent: it is another's


def terms(law: Law, configured: Mode, said: SuppressSection, *, placeable: bool) -> SuppressTerms:
    """`placeable`: CPU sets can be written here; a buffer is kept by quota where they cannot."""
    mode: Mode = configured if said.mode is UNSET else said.mode
    changed: dict[str, Any] = {}
    if mode == "buffer":
        changed |= PEAK
        if said.buffer_cpus is not UNSET:
            changed["reserve_cpus"] = float(said.buffer_cpus.amount)
    elif said.threshold_percent is not UNSET:
        changed |= QUICK
    if said.threshold_percent is not UNSET:
        changed["ceiling"] = said.threshold_percent / 100
    if said.min_percent is not UNSET:
        changed["floor"] = said.min_percent / 100
    by_cpus = mode == "cpuset" or (mode == "buffer" and placeable)
    return SuppressTerms(
        replace(law, **changed),
        "cpuset" if by_cpus else "quota",
        mode == "auto" and said.threshold_percent is UNSET,
        mode == "buffer",
    )
