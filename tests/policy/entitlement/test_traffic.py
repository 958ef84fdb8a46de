"""What a workload may send and receive follows from its sections, its reservations and its limits."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.model.kinds import IoSection, MinimalReservationPolicy, NetworkSection, QoSProfile
from j10ce.model.machine.facts import NodeFacts
from j10ce.model.parts.sections import NetworkDirection, ProfileOverlay
from j10ce.model.quantity import Quantity
from j10ce.model.workload import Entitlement, Overrides, Traffic, Workload
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.entitlement.resolve import resolve
from j10ce.policy.profiles import TRUSTED_LABEL
from j10ce.policy.strategy import merged
from j10ce.testing import build

NODE = build.node(links={"eth0": build.link()})
NOWHERE = build.node(links={"eth0": build.link(speed=None)})
FREE = Traffic()


def q(text: str) -> Quantity:
    return Quantity.parse(text)


def section(**fields: Any) -> NetworkSection:
    inside = {name: NetworkDirection(**fields.pop(name)) for name in ("egress", "ingress") if name in fields}
    return NetworkSection(**fields, **inside)


def entitled(
    *workloads: Workload,
    profile: QoSProfile | None = None,
    policies: tuple[MinimalReservationPolicy, ...] = (),
    node: NodeFacts = NODE,
    strategy: dict[str, Any] | None = None,
) -> list[Entitlement]:
    document = NodeDocument(node="n1", profiles=(profile,) if profile else (), policies=policies)
    said = merged([build.strategy("pool", strategy or {})])
    resolution = resolve(workloads, document, node, wall=build.WALL, strategy=said)
    return [resolution.entitlements[w.target] for w in workloads]


@pytest.mark.parametrize(
    ("said", "egress", "ingress"),
    [
        pytest.param(section(), FREE, FREE, id="nothing"),
        pytest.param(section(floor=q("100Mbit")), Traffic(1e8), Traffic(1e8), id="a floor holds both ways"),
        pytest.param(section(floor=q("20%")), Traffic(2e8), Traffic(2e8), id="percent of the link"),
        pytest.param(
            section(ceiling=q("200Mbit"), egress={"ceiling": q("10%")}),
            Traffic(0, 1e8),
            Traffic(0, 2e8),
            id="what is said of a direction alone goes over it",
        ),
        pytest.param(section(egress={"floor": q("1Mbit")}), Traffic(1e6), FREE, id="one direction alone"),
        pytest.param(
            section(egress={"floor": q("20%")}, ingress={"floor": q("1Mbit")}),
            Traffic(2e8),
            Traffic(1e6),
            id="a floor for each",
        ),
    ],
)
def test_sections_say_what_each_direction_has(said: NetworkSection, egress: Traffic, ingress: Traffic) -> None:
    (e,) = entitled(build.workload("a", profile="web"), profile=build.profile("web", network=said))
    assert (e.egress, e.ingress) == (egress, ingress)
    assert e.floor.network == max(egress.floor, ingress.floor)
    assert not e.notes or said != section()


def test_a_reservation_holds_both_ways_and_a_limit_caps_both() -> None:
    policy = build.reservation("p", labels={"app": "a"}, network="50Mbit")
    profile = build.profile("web", network=section(egress={"floor": q("100Mbit")}))
    w = build.workload("a", profile="web", labels={"app": "a"}, network_limit="300Mbit")
    (e,) = entitled(w, profile=profile, policies=(policy,))
    assert (e.egress, e.ingress) == (Traffic(1e8, 3e8), Traffic(5e7, 3e8))
    assert {(s.field, s.object) for s in e.sources} >= {("floor.network", "QoSProfile/web#network")}


def test_a_reservation_of_one_workload_needs_no_profile() -> None:
    (e,) = entitled(build.workload("a", min_network="10Mbit"))
    assert e.chosen
    assert e.egress == e.ingress == Traffic(1e7)


def test_ten_workloads_with_a_fifth_each_get_as_many_as_fit_and_the_others_hear_the_numbers() -> None:
    workloads = [build.workload(f"w{n}", profile="web", since=float(n)) for n in range(10)]
    granted = entitled(*workloads, profile=build.profile("web", network=section(floor=q("20%"))))
    assert [e.egress.floor for e in granted] == [2e8] * 4 + [0.0] * 6
    assert sum(e.floor.network for e in granted) <= NODE.capacity.network
    refusal = str(granted[4].notes[-1])
    assert "network 200Mbit wanted, 150Mbit free of 950Mbit" in refusal


def test_a_floor_that_is_refused_takes_nothing_else_with_it() -> None:
    from j10ce.model.kinds import MemorySection

    profile = build.profile("web", memory=MemorySection(min_percent=50), network=section(floor=q("99%")))
    (e,) = entitled(build.workload("a", profile="web", memory="1Gi"), profile=profile)
    assert (e.floor.network, e.floor.memory) == (0, 512 << 20)


@pytest.mark.parametrize("said", [section(floor=q("20%")), section(ceiling=q("20%")), section(floor=q("1Mbit"))])
def test_without_a_capacity_nothing_is_promised_and_a_percentage_is_no_amount(said: NetworkSection) -> None:
    (e,) = entitled(build.workload("a", profile="web"), profile=build.profile("web", network=said), node=NOWHERE)
    assert (e.egress, e.ingress) == (FREE, FREE)
    assert sum("no managed link has a known capacity" in str(note) for note in e.notes) == 2


def test_a_ceiling_needs_no_capacity() -> None:
    profile = build.profile("web", network=section(ceiling=q("20Mbit")))
    (e,) = entitled(build.workload("a", profile="web"), profile=profile, node=NOWHERE)
    assert e.egress == e.ingress == Traffic(0, 2e7)


def test_a_floor_above_the_link_is_named_with_both_numbers() -> None:
    (e,) = entitled(build.workload("a", profile="web"), profile=build.profile("web", network=section(floor=q("2Gbit"))))
    assert e.egress == FREE
    assert any("2Gbit (egress) is more than the slowest managed link has, 1Gbit" in str(n) for n in e.notes)


@pytest.mark.parametrize("trusted", [True, False])
def test_bandwidth_for_one_workload_alone_is_the_administrators_to_give(trusted: bool) -> None:
    own = ProfileOverlay(network=section(floor=q("10Mbit"), ceiling=q("20Mbit")))
    labels = {TRUSTED_LABEL: "true"} if trusted else {}
    w = build.workload("a", profile="web", namespace_labels=labels, overrides=Overrides(own))
    (e,) = entitled(w, profile=build.profile("web"))
    assert e.egress == Traffic(1e7 if trusted else 0.0, 2e7)
    assert any("network.floor 10M" in str(n) for n in e.notes) is not trusted


def test_a_strategy_says_it_for_a_profile_on_its_nodes() -> None:
    strategy = {"profiles": {"web": {"network": {"class": "bulk", "egress": {"ceiling": "10Mbit"}}}}}
    (e,) = entitled(build.workload("a", profile="web"), profile=build.profile("web"), strategy=strategy)
    assert e.network.class_ == "bulk"
    assert (e.egress, e.ingress) == (Traffic(0, 1e7), FREE)
    assert ("network.egress.ceiling", "NodeStrategy/pool") in {(s.field, s.object) for s in e.sources}


def test_disk_limits_are_the_lower_of_section_and_limit() -> None:
    profile = build.profile("web", io=IoSection(read_limit=q("10M"), write_limit=q("90M"), weight=50))
    w = build.workload("a", profile="web")
    (e,) = entitled(w, profile=profile)
    assert (e.ceiling.disk_read, e.ceiling.disk_write, e.io.weight) == (1e7, 9e7, 50)
    assert (w.limits.disk_read, e.ceiling.cpu) == (math.inf, math.inf)


@pytest.mark.parametrize("own", [True, False], ids=["its own network", "the host's"])
def test_a_pod_is_entitled_to_the_same_whichever_network_it_has(own: bool) -> None:
    pod = replace(build.workload("a", profile="web"), own_network=own)
    said = section(ceiling=q("20Mbit"))
    (e,) = entitled(pod, profile=build.profile("web", network=said))
    assert (e.egress, e.ingress, e.notes) == (Traffic(0.0, 2e7), Traffic(0.0, 2e7), ())
