"""What is said to links and of traffic: nothing where nobody asks, else what follows from entitlements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.control.network.levels import CLASSES, COMMON, LEVELS
from j10ce.control.network.network import Network
from j10ce.model.kinds import NetworkSection, Tier
from j10ce.model.knob import Setting, link
from j10ce.model.machine.link import Link
from j10ce.model.parts.devices import LinkOverlay, LinksSection
from j10ce.model.parts.strategy import Strategy
from j10ce.model.plan import Bound
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement, Source, Traffic
from j10ce.testing import build

ETH0 = build.link()
LINK = link("eth0")


def entitled(name: str = "api", tier: str = "standard", **fields: Any) -> Entitlement:
    given = build.entitlement(build.workload(name), tier=tier, profile="gold")
    return replace(given, **fields)


def machine(
    *entitlements: Entitlement,
    links: Iterable[Link] = (ETH0,),
    lacking: Iterable[str] = (),
    strategy: LinksSection | None = None,
) -> Snapshot:
    workloads = [build.workload(e.target.rpartition("/")[2]) for e in entitlements]
    node = build.node(links={k.name: k for k in links})
    snap = build.snapshot(*entitlements, workloads=workloads, on=node, lacking=lacking)
    return replace(snap, strategy=Strategy(network=strategy or LinksSection()))


def said(snap: Snapshot) -> dict[str, Any]:
    """Setting -> value of what is wanted or is the least."""
    proposals = Network(Network.Config()).propose(snap)
    return {str(p.setting): p.value for p in proposals if p.bound is not Bound.AT_MOST}


FLOOR = {"egress": Traffic(1e8), "ingress": Traffic(1e8)}


@pytest.mark.parametrize(
    "quiet",
    [
        pytest.param([], id="no workload"),
        pytest.param([entitled()], id="nothing is asked of the network"),
        pytest.param([entitled(tier="besteffort")], id="a tier alone is no wish"),
        pytest.param([entitled(chosen=False, **FLOOR)], id="one that nobody chose"),
    ],
)
def test_where_nobody_asks_nothing_is_said(quiet: list[Entitlement]) -> None:
    assert said(machine(*quiet)) == {}


def test_a_floor_holds_both_ways_on_every_managed_link() -> None:
    links = (ETH0, build.link("eth1", "10Gbit"), build.link("eth2", managed=False))
    assert said(machine(entitled(**FLOOR), links=links)) == {
        "link/eth0 link.egress.rate": 9.9e8,
        "link/eth0 link.ingress.rate": 9.9e8,
        "link/eth1 link.egress.rate": 9.9e9,
        "link/eth1 link.ingress.rate": 9.9e9,
        **{
            f"workload/default/api net.{way}.floor[{name}]": 1e8
            for way in ("egress", "ingress")
            for name in ("eth0", "eth1")
        },
    }


def test_what_is_said_of_one_direction_leaves_the_other_alone() -> None:
    assert said(machine(entitled(egress=Traffic(0, 5e7)))) == {
        "link/eth0 link.egress.rate": 9.9e8,
        "workload/default/api net.egress.ceil[eth0]": 5e7,
    }


def test_a_ceiling_is_wanted_and_nobody_may_go_further() -> None:
    proposals = list(Network(Network.Config()).propose(machine(entitled(egress=Traffic(0, 5e7)))))
    ceil = Setting(build.workload("api").target, "net.egress.ceil", "eth0")
    assert {p.bound for p in proposals if p.setting == ceil} == {Bound.WANT, Bound.AT_MOST}


def test_a_ceiling_above_the_link_says_nothing() -> None:
    assert "net.egress.ceil" not in " ".join(said(machine(entitled(egress=Traffic(1e6, 2e9)))))


def test_once_somebody_asks_the_others_have_their_turn_by_tier() -> None:
    asking, bulk = entitled("api", **FLOOR), entitled("batch", "besteffort")
    spoken = said(machine(asking, bulk, entitled("web")))
    assert {k: v for k, v in spoken.items() if "priority" in k} == {
        "workload/default/batch net.egress.priority[eth0]": 6.0,
        "workload/default/batch net.ingress.priority[eth0]": 6.0,
    }


def test_a_class_alone_orders_what_is_sent() -> None:
    assert said(machine(entitled(network=NetworkSection(class_="bulk")))) == {
        "link/eth0 link.egress.rate": 9.9e8,
        "workload/default/api net.egress.priority[eth0]": 5.0,
    }


def test_no_class_of_a_tier_comes_after_one_of_a_tier_below() -> None:
    for better, worse in itertools.pairwise(Tier):
        assert max(LEVELS[better]) <= min(LEVELS[worse])
    for tier in Tier:
        assert list(LEVELS[tier]) == sorted(LEVELS[tier]), "nor does critical come after bulk"
    assert LEVELS[Tier.STANDARD][CLASSES.index("normal")] == COMMON, "who says nothing is served like strangers"


def test_a_link_of_unknown_capacity_holds_ceilings_and_divides_nothing() -> None:
    snap = machine(entitled(egress=Traffic(1e8, 5e8)), entitled("be", "besteffort"), links=(build.link(speed=None),))
    assert said(snap) == {
        "link/eth0 link.egress.rate": 1e12,
        "workload/default/api net.egress.ceil[eth0]": 5e8,
    }
    (reason,) = {p.reason for p in Network(Network.Config()).propose(snap) if p.setting.target == LINK}
    assert "network.links.eth0.egress" in reason


@pytest.mark.parametrize(
    ("known", "rate"),
    [
        pytest.param({}, 9.9e8, id="a device's own speed, less one percent"),
        pytest.param({"said": 1e8}, 1e8, id="an operator's word as it is"),
        pytest.param({"speed": math.inf, "said": 2e8}, 2e8, id="an operator's word where the device says none"),
        pytest.param({"speed": 64_000.0}, 63_360.0, id="a slow line"),
        pytest.param({"speed": 1e11}, 9.9e10, id="100 Gbit"),
    ],
)
def test_a_link_is_queued_for_at_what_it_carries(known: dict[str, float], rate: float) -> None:
    spoken = said(machine(entitled(**FLOOR), links=(replace(ETH0, **known),)))
    assert spoken["link/eth0 link.egress.rate"] == spoken["link/eth0 link.ingress.rate"] == rate


@pytest.mark.parametrize(
    ("strategy", "taken"),
    [
        pytest.param(LinksSection(), False, id="by default nobody's queueing is touched"),
        pytest.param(LinksSection(take_over=True), True, id="of every link"),
        pytest.param(LinksSection(links={"eth0": LinkOverlay(take_over=True)}), True, id="of this one"),
        pytest.param(LinksSection(take_over=True, links={"eth0": LinkOverlay(take_over=False)}), False, id="but this"),
    ],
)
def test_queueing_of_others_is_put_aside_only_where_an_operator_says_so(strategy: LinksSection, taken: bool) -> None:
    assert (said(machine(entitled(**FLOOR), strategy=strategy)).get("link/eth0 link.take_over") == 1.0) is taken


def behind(*addresses: str, links: Iterable[Link]) -> dict[str, Any]:
    """What is said where the one workload has a network of its own, with these addresses."""
    snap = machine(entitled(egress=Traffic(1e8), ingress=Traffic(1e8)), links=links)
    whose = {t: replace(w, own_network=True, addresses=addresses) for t, w in snap.workloads.items()}
    return said(replace(snap, workloads=whose))


def test_a_workload_behind_a_door_is_known_by_it_on_every_managed_link() -> None:
    door = build.link("veth1", None, managed=False, beyond=("fd00::7",))
    spoken = behind("10.0.0.7", "fd00::7", links=[ETH0, build.link("eth1"), door])
    assert {k: v for k, v in spoken.items() if "door" in k} == {
        "workload/default/api net.door[eth0]": "veth1",
        "workload/default/api net.door[eth1]": "veth1",
    }


def test_ceilings_of_a_workload_behind_a_door_hold_there_for_whomever_it_talks_to() -> None:
    """What it receives leaves this machine by the door."""
    limits = entitled(egress=Traffic(0.0, 2e7), ingress=Traffic(0.0, 3e7))
    door = build.link("veth1", None, managed=False, beyond=("10.0.0.7",))
    snap = machine(limits, links=[ETH0, door])
    whose = {t: replace(w, own_network=True, addresses=("10.0.0.7",)) for t, w in snap.workloads.items()}
    spoken = said(replace(snap, workloads=whose))
    assert spoken["link/veth1 link.egress.rate"] == 3e7
    assert spoken["link/veth1 link.ingress.rate"] == 2e7
    assert "link/veth1 link.egress.rate" not in said(machine(limits, links=[ETH0, door]))


def test_what_comes_in_for_whoever_is_behind_a_door_is_known_by_what_has_left() -> None:
    door = build.link("veth1", None, managed=False, beyond=("10.0.0.7",))
    snap = machine(entitled(ingress=Traffic(1e8)), links=[ETH0, door])
    whose = {t: replace(w, own_network=True, addresses=("10.0.0.7",)) for t, w in snap.workloads.items()}
    spoken = said(replace(snap, workloads=whose))
    assert {"link/eth0 link.egress.rate", "workload/default/api net.door[eth0]"} <= spoken.keys()
    assert "link/eth0 link.egress.rate" not in said(snap)


def test_a_network_of_its_own_that_no_link_leads_to_has_no_door() -> None:
    other = build.link("veth1", None, managed=False, beyond=("10.0.0.8",))
    assert not [k for k in behind("10.0.0.7", links=[ETH0, other]) if "door" in k]


def test_whoever_gives_itself_the_address_of_another_does_not_get_what_that_one_is_promised() -> None:
    """Of two ends with one address nobody here knows which is the pod's."""
    doors = [build.link(f"veth{n}", None, managed=False, beyond=("10.0.0.7",)) for n in (1, 2)]
    assert not [k for k in behind("10.0.0.7", links=[ETH0, *doors]) if "door" in k]
    own = replace(doors[0], beyond=("10.0.0.7", "fd00::7"))
    spoken = behind("10.0.0.7", "fd00::7", links=[ETH0, own, doors[1]])
    assert spoken["workload/default/api net.door[eth0]"] == "veth1"


def test_a_workload_in_the_machines_own_network_has_no_door() -> None:
    door = build.link("veth1", None, managed=False, beyond=("10.0.0.7",))
    assert not [k for k in said(machine(entitled(**FLOOR), links=[ETH0, door])) if "door" in k]


def test_what_the_kernel_lacks_is_not_asked_of_it() -> None:
    nothing = [f"link.{way}.rate" for way in ("egress", "ingress")]
    assert said(machine(entitled(**FLOOR), lacking=nothing)) == {}
    assert not [k for k in said(machine(entitled(**FLOOR), lacking=["link.ingress.rate"])) if "ingress" in k]


def test_rates_that_no_kernel_can_time_are_raised() -> None:
    spoken = said(machine(entitled(egress=Traffic(1.0, 10.0))))
    assert spoken["workload/default/api net.egress.floor[eth0]"] == 64_000.0
    assert spoken["workload/default/api net.egress.ceil[eth0]"] == 64_000.0


def test_every_reason_has_its_number_and_names_the_link() -> None:
    sources = (Source("floor.network", "MinimalReservationPolicy/default/p", "at least 100Mbit"),)
    snap = machine(entitled(egress=Traffic(1e8, 2e8), sources=sources), entitled("be", "besteffort"))
    reasons = {p.setting.knob: p.reason for p in Network(Network.Config()).propose(snap)}
    assert reasons == {
        "link.egress.rate": "eth0 carries 1Gbit, less 1% so that queues are here",
        "net.egress.floor": "floor 100Mbit of eth0's 990Mbit, by MinimalReservationPolicy/default/p",
        "net.egress.ceil": "ceiling 200Mbit of eth0's 990Mbit",
        "net.egress.priority": "tier besteffort, class normal: level 6 of 0 to 7 when more is wanted than eth0 carries",
    }


def test_the_same_is_said_again_while_nothing_changes() -> None:
    controller, snap = Network(Network.Config()), machine(entitled(**FLOOR))
    assert [*controller.propose(snap)] == [*controller.propose(replace(snap, now=snap.now + 60))]
