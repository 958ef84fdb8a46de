"""What `place` answers: a decision with its reasons. Not stored; the reservation that it made is."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from msgspec import UNSET, UnsetType, field

from j10ce.model.kinds import API_VERSION, Meta, Strict
from j10ce.model.quantity import Quantity

MOST_VERDICTS: Final = 100  # nodes listed in one answer; the counts cover the rest


class Score(Strict, frozen=True, kw_only=True):
    name: str
    points: float
    of: float  # the most that this scorer gives
    why: str = ""


class NodeVerdict(Strict, frozen=True, kw_only=True):
    """How one node did: turned down by filters, or scored; the points of its scores add up to its score."""

    node: str
    fits: bool
    score: float = 0.0  # 0 to 100
    reason: str = ""
    refused_by: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()


class Placement(Strict, frozen=True, kw_only=True, omit_defaults=False):
    metadata: Meta
    node: str = ""  # empty: none fits
    reservation: str = ""  # MinimalReservationPolicy/payments/placement-db-0; empty in a dry run
    expires: datetime | UnsetType = UNSET  # when the reservation ends if the workload does not come
    stands_on: str = ""  # the policy whose unit the workload takes; empty: room of its own
    floor: dict[str, Quantity] = field(default_factory=dict)
    message: str = ""
    refused: dict[str, int] = field(default_factory=dict)  # filter -> nodes that it turned down
    nodes: tuple[NodeVerdict, ...] = ()
    dry_run: bool = False
    api_version: Literal["j10ce.io/v1alpha1"] = API_VERSION
    kind: Literal["Placement"] = "Placement"
