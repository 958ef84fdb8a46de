"""The Reservation Manager: which policies the fleet admits, and where their units are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from msgspec import UNSET

from j10ce.model.kinds import Condition, MinimalReservationPolicy, NodeQoS, UnitCount, Witness
from j10ce.policy.document import reference


class Decision(NamedTuple):
    """What the fleet makes of one policy: the part of its status that no single agent can know."""

    conditions: tuple[Condition, ...]  # Admitted comes first; without times, see `stamped`
    units: UnitCount = UnitCount()
    witness: tuple[Witness, ...] = ()  # units by node, used ones included; empty unless admitted
    generation: int = 0  # the admitted one: status.admittedGeneration; 0 when there is none
    degraded: bool = False  # admitted, and not every unit has a place

    @property
    def admitted(self) -> Condition:
        return self.conditions[0]


class Reservations:
    """Keeps the fleet's ledger between calls; each call takes in what has changed."""

    def decide(
        self, policies: Collection[MinimalReservationPolicy], nodes: Collection[NodeQoS], wall: float
    ) -> Mapping[str, Decision]:
        """By `reference` of the policy. A policy without units is admitted as it is: it holds nothing unused."""
        return {reference(p): _alone(p, wall) for p in policies}


def _alone(policy: MinimalReservationPolicy, wall: float) -> Decision:
    generation, wanted = policy.metadata.generation, UnitCount(wanted=policy.spec.units)
    ttl, created = policy.spec.ttl, policy.metadata.creation_timestamp
    if ttl is not UNSET and created is not UNSET and wall >= created.timestamp() + ttl.seconds:
        message = f"its ttl of {ttl} is over; its capacity is free"
        over = Condition(
            type="Admitted", status="False", reason="Expired", message=message, observed_generation=generation
        )
        return Decision((over,), wanted)
    granted = Condition(type="Admitted", status="True", reason="Granted", observed_generation=generation)
    return Decision((granted,), wanted, generation=generation)
