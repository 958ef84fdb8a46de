"""An operator's word over what a machine says of its links and disks."""

from __future__ import annotations

import math

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.model.machine.disk import Disk
from j10ce.model.machine.link import Link
from j10ce.model.parts.devices import DiskOverlay, DisksSection, LinkOverlay, LinksSection
from j10ce.model.parts.strategy import Strategy
from j10ce.model.quantity import Quantity
from j10ce.policy.equipment import described, equipped, unmeasured
from j10ce.testing import build

ETH0, ETH1, STRANGE = build.link(), build.link("eth1", managed=False), build.link("eth2", None)
DISK = Disk("8:0", "sda", "S1", managed=True)
NODE = build.node(links={k.name: k for k in (ETH0, ETH1, STRANGE)}, disks={"8:0": DISK})


def with_links(**links: LinkOverlay) -> dict[str, Link]:
    return dict(equipped(NODE, Strategy(network=LinksSection(links=links))).links)


def q(text: str) -> Quantity:
    return Quantity.parse(text)


def test_facts_of_which_nothing_is_said_stay_the_same_object() -> None:
    assert equipped(NODE, Strategy()) is NODE
    assert equipped(NODE, Strategy(network=LinksSection(links={"eth7": LinkOverlay(egress=q("1Gbit"))}))) is NODE


@pytest.mark.parametrize(
    ("said", "capacity", "ingress"),
    [
        pytest.param(LinkOverlay(egress=q("100Mbit")), 1e8, 1e8, id="an amount, for both directions"),
        pytest.param(LinkOverlay(egress=q("50%")), 5e8, 5e8, id="percent of its own speed"),
        pytest.param(LinkOverlay(ingress=q("200Mbit")), 1e9, 2e8, id="another one inwards"),
        pytest.param(LinkOverlay(), 1e9, 1e9, id="only named"),
    ],
)
def test_what_a_link_carries_is_what_the_operator_says(said: LinkOverlay, capacity: float, ingress: float) -> None:
    link = with_links(eth0=said)["eth0"]
    assert (link.capacity, link.ingress_capacity) == (capacity, ingress)


@pytest.mark.parametrize(
    ("said", "managed"),
    [(LinkOverlay(), True), (LinkOverlay(managed=False), False), (LinkOverlay(managed=True), True), (None, False)],
    ids=["named", "left alone", "wanted", "not named"],
)
def test_whoever_names_a_link_wants_it_managed(said: LinkOverlay | None, managed: bool) -> None:
    assert with_links(**({"eth1": said} if said else {}))["eth1"].managed is managed


def test_percent_of_an_unknown_speed_is_no_amount_and_is_named() -> None:
    strategy = Strategy(network=LinksSection(links={"eth2": LinkOverlay(egress=q("50%"))}))
    assert equipped(NODE, strategy).links["eth2"].capacity == math.inf
    assert [text.partition(":")[0] for text in unmeasured(NODE, strategy)] == ["network.links.eth2.egress"]
    assert not [*unmeasured(NODE, Strategy(network=LinksSection(links={"eth0": LinkOverlay(egress=q("50%"))})))]


def test_headroom_is_kept_of_a_links_own_speed_and_never_of_an_operators_word() -> None:
    said = LinksSection(headroom_percent=20, links={"eth1": LinkOverlay(egress=q("100Mbit"))})
    links = equipped(NODE, Strategy(network=said)).links
    assert {name: link.capacity for name, link in links.items()} == {"eth0": 8e8, "eth1": 1e8, "eth2": math.inf}


@pytest.mark.parametrize("name", ["8:0", "sda", "S1"])
def test_a_disk_is_known_by_number_name_and_serial(name: str) -> None:
    said = DiskOverlay(read_bps=q("200M"), write_bps=q("100M"), read_iops=1000)
    disk = equipped(NODE, Strategy(io=DisksSection(disks={name: said}))).disks["8:0"]
    assert disk == replace(DISK, read_bps=200_000_000, write_bps=100_000_000, read_iops=1000)
    assert disk.calibrated


def test_a_node_promises_what_its_slowest_managed_link_and_its_calibrated_disks_have() -> None:
    said = Strategy(
        network=LinksSection(links={"eth1": LinkOverlay(egress=q("100Mbit"))}),
        io=DisksSection(disks={"sda": DiskOverlay(read_bps=q("200M"), write_bps=q("100M"))}),
    )
    assert equipped(NODE, said).capacity[2:] == (100_000_000, 200_000_000, 100_000_000)
    assert NODE.capacity[2:] == (1_000_000_000, 0, 0)


def test_people_read_where_a_capacity_comes_from() -> None:
    said = with_links(eth0=LinkOverlay(egress=q("100Mbit")))["eth0"]
    assert [described(k) for k in (ETH0, said, STRANGE)] == [
        "1Gbit by its own speed",
        "100Mbit as an operator says",
        "no known speed",
    ]
    assert LinkOverlay().egress is UNSET
