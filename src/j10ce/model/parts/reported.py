"""What nodes report of capabilities, floors, reservations and changes; and what managers make of it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import UNSET, UnsetType, field

from j10ce.model.bounds import Named, Number, Text, Word, Words
from j10ce.model.parts.strict import Strict
from j10ce.model.quantity import Quantity


class EffectiveFloor(Strict, frozen=True, kw_only=True):
    """Whether the floor really holds for one workload on one node, and if not, why."""

    node: Word
    workload: Word
    resource: Word
    promised: Quantity
    effective: Quantity
    reason: Text = ""
    source: Word = ""  # the object that promised it: MinimalReservationPolicy/payments/db


class Capability(Strict, frozen=True, kw_only=True):
    """One line of the doctor: a feature, whether it works, and how to get it."""

    feature: Word
    ok: bool
    via: Text = ""
    needs: Text = ""
    instead: Text = ""


class ReservationReport(Strict, frozen=True, kw_only=True):
    """What one node makes of one MinimalReservationPolicy."""

    source: Word  # MinimalReservationPolicy/payments/db
    generation: Number = 0  # that the node obeys
    workloads: Number = 0  # that match
    units: Number = 0  # held here, used ones included
    used: Number = 0
    charged: Number = 0  # workloads that it pays for, on a unit or beyond
    amount: Named[Quantity] = field(default_factory=dict)  # that those are promised
    unprotected: Number = 0  # workloads that match and lack the floor
    unprotected_workloads: Words = ()  # the names of those, of as many as fit
    refused: Text = ""  # what was not granted, with the numbers


class EvictionRequest(Strict, frozen=True, kw_only=True):
    """A workload that a node wants to see leave; it stands there as long as the node wants it."""

    namespace: Word
    name: Word
    uid: Word = ""  # of the pod: another one of that name is not meant
    why: Text = ""
    since: datetime | UnsetType = UNSET


class InterferenceReport(Strict, frozen=True, kw_only=True):
    """A workload that suffers on a node, another that is why, and what is done about it."""

    victim: Word
    antagonist: Word
    resource: Word  # cpu, memory, io, cache
    suffering: Text = ""
    evidence: Text = ""
    correlation: float = 0.0  # of ranks; 0 where the antagonist holds most of the resource all the time
    samples: Number = 0
    action: Text = ""


class AppliedChange(Strict, frozen=True, kw_only=True):
    """A traced change of an object that this node has carried out."""

    source: Word
    generation: Number
    trace: Word  # W3C traceparent of the request
    received: datetime
    applied: datetime
    writes: Number = 0  # of settings, in the run that carried it out


class OvercommitTerm(Strict, frozen=True, kw_only=True):
    """One step on the way to a reclaimable amount; the steps of a `result`, taken in order from zero, give it."""

    result: Word  # batch-cpu, batch-memory, mid-cpu, mid-memory
    step: Literal["plus", "minus", "at most", "at least"]
    name: Word
    amount: Quantity
    why: Text = ""
