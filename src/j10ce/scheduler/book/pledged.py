"""What of a policy is in force for schedulers: the units that it holds, and where."""

from __future__ import annotations

from collections.abc import Iterable

from j10ce.model.kinds import MinimalReservationPolicy, PolicyRevision
from j10ce.model.resource import NOTHING
from j10ce.policy.document.document import placed, reference
from j10ce.policy.entitlement.resolve import amounts
from j10ce.policy.lifetime import admitted, ends, over
from j10ce.scheduler.book.units import HeldPledge


def pledge_of(policy: MinimalReservationPolicy, revisions: Iterable[PolicyRevision], wall: float) -> HeldPledge | None:
    """None where it holds nothing."""
    held = admitted(policy, revisions)
    if held is None or not held.spec.units or over(policy, wall):
        return None
    spec, units = held.spec, placed(policy)
    shape, lends = amounts(spec.minimum, NOTHING), spec.lending.mode == "Reclaimable"
    return HeldPledge(reference(policy), policy.metadata.namespace, spec.selector, shape, units, lends, ends(policy))
