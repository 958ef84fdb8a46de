"""How busy the CPUs are that nobody has for itself.

use of the pool = (node − those with CPUs of their own − best effort) / (CPUs − what the former ask for)
"""

from __future__ import annotations

import math
from typing import Final, Literal

from j10ce.model.kinds import Tier
from j10ce.model.knob import NODE, TargetId
from j10ce.model.snapshot import Snapshot

State = Literal["idle", "cooling", "overload", "unknown"]
OWN_CPUS: Final = frozenset({Tier.EXCLUSIVE, Tier.RESERVED})
COOLING: Final = 0.9  # of the threshold: from here on nothing is raised
SPAN_S: Final = 10.0


def pool_use(snap: Snapshot) -> float | None:
    """A share of the pool, on average over some seconds; None: nothing was read."""
    node = snap.readings.window(NODE, "cpu.usage", SPAN_S).mean()
    if node is None:
        return None
    owners = {t: e for t, e in snap.entitlements.items() if e.chosen and e.tier in OWN_CPUS}
    besteffort = [t for t, e in snap.entitlements.items() if e.tier is Tier.BESTEFFORT]
    apart = math.fsum(_used(snap, t) for t in (*owners, *besteffort))
    cpus = (snap.node.capacity.cpu - sum(e.requests.cpu for e in owners.values())) / 1000
    return max(0.0, node - apart) / cpus if cpus > 0 else math.inf


def state(use: float | None, threshold: float) -> State:
    if use is None:
        return "unknown"
    if use >= threshold:
        return "overload"
    return "cooling" if use >= COOLING * threshold else "idle"


def _used(snap: Snapshot, target: TargetId) -> float:
    return snap.readings.window(target, "cpu.usage", SPAN_S).mean() or 0.0
