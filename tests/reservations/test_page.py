"""docs/reservations.md: its manifests are decided here, and what it shows is what they get."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from j10ce.manager.documents.silence import SILENT_S
from j10ce.manager.policies.reservations import Reservations
from j10ce.model.kinds import MinimalReservationPolicy, NodeQoS
from j10ce.model.schema import decode
from j10ce.testing.build import WALL, meta
from tests.docs.pages import CLONE, blocks
from tests.hearing import Roster
from tests.reservations.objects import node

PAGE = "docs/reservations.md"
REPORT = "MinimalReservationPolicy/sales/report"


def manifests() -> list[MinimalReservationPolicy]:
    body = [decode(yaml.safe_load(b.text)) for b in blocks() if b.page == PAGE and b.language == "yaml"]
    return [
        replace(
            p, metadata=meta(p.metadata.name, p.metadata.namespace, created=WALL + n, uid=p.metadata.name, generation=1)
        )
        for n, p in enumerate(body)
        if isinstance(p, MinimalReservationPolicy)
    ]


def hosts(*, heard: tuple[str, ...] = ("host-1", "host-2", "host-3"), wall: float = WALL) -> list[NodeQoS]:
    ssd: dict[str, Any] = {"host-2": {"disk": "ssd"}}
    return [
        node(name, labels=ssd.get(name, {}), heard=wall if name in heard else WALL)
        for name in ("host-1", "host-2", "host-3")
    ]


@pytest.fixture(scope="module")
def page() -> str:
    return " ".join((CLONE / PAGE).read_text().split())


def test_the_refusal_is_the_one_that_is_shown(page: str) -> None:
    decided = Reservations(Roster(), limit_percent=100).decide(manifests(), hosts(), WALL)
    assert decided["MinimalReservationPolicy/payments/db"].witness[0].node == "host-2"
    assert decided[REPORT].admitted.message in page


def test_the_limit_is_the_one_that_is_shown(page: str) -> None:
    decided = Reservations(Roster()).decide(manifests(), hosts(), WALL)
    assert decided[REPORT].admitted.message in page


def test_the_shortage_is_the_one_that_is_shown(page: str) -> None:
    _, report = manifests()
    fleet = Reservations(Roster(), limit_percent=100)
    assert fleet.decide([report], hosts(), WALL)[REPORT].admitted.status == "True"
    later = WALL + SILENT_S + 1
    degraded = fleet.decide([report], hosts(heard=("host-1",), wall=later), later)[REPORT].conditions[1]
    assert degraded.message in page
