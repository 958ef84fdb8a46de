"""Whose packets go first. Tiers stand above classes: no class of a tier comes after any class of a tier below it.

The kernel's queues have eight levels, 0 the best. Who is not ours is served as tier standard.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import UNSET

from j10ce.model.kinds import Tier
from j10ce.model.workload import Entitlement

COMMON: Final = 4  # of those of whom nothing is said, and of all that is not ours
# Tier -> levels of its classes critical, normal, bulk.
LEVELS: Final[Mapping[Tier, tuple[int, int, int]]] = {
    Tier.SYSTEM: (0, 0, 0),
    Tier.EXCLUSIVE: (1, 1, 1),
    Tier.RESERVED: (1, 1, 2),
    Tier.SENSITIVE: (2, 3, 3),
    Tier.STANDARD: (4, 4, 5),
    Tier.BESTEFFORT: (6, 6, 7),
}
CLASSES: Final = ("critical", "normal", "bulk")
NORMAL: Final = "normal"


def level(e: Entitlement) -> int:
    said = e.network.class_
    return LEVELS[e.tier][CLASSES.index(NORMAL if said is UNSET else said)]


def why(e: Entitlement) -> str:
    said = e.network.class_
    return f"tier {e.tier.value}, class {NORMAL if said is UNSET else said}"
