"""What a node reports in sum."""

from __future__ import annotations

from msgspec import field

from j10ce.model.bounds import Named, Number
from j10ce.model.parts.strict import Strict
from j10ce.model.quantity import Quantity


class TierTotal(Strict, frozen=True, kw_only=True):
    """What one tier has on a node, all its workloads together, by resource."""

    workloads: Number = 0
    promised: Named[Quantity] = field(default_factory=dict)
    effective: Named[Quantity] = field(default_factory=dict)
    used: Named[Quantity] = field(default_factory=dict)
