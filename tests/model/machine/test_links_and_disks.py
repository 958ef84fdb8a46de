"""What a machine has of links and disks: the least that every floor can rely on."""

from __future__ import annotations

import math

import pytest

from j10ce.model.machine.disk import Disk
from j10ce.model.machine.link import Link
from j10ce.model.resource import Resources
from j10ce.testing import build

FAST, SLOW = Link("eth0", speed=10e9, managed=True), Link("eth1", speed=1e9, managed=True)


@pytest.mark.parametrize(
    ("links", "network"),
    [
        pytest.param([], 0, id="no link"),
        pytest.param([FAST, SLOW], 1_000_000_000, id="the least of two"),
        pytest.param([FAST, Link("wlan0", managed=True)], 10_000_000_000, id="one whose speed nobody knows"),
        pytest.param([Link("wlan0", managed=True)], 0, id="none is known"),
        pytest.param([FAST, Link("veth1", speed=1e6)], 10_000_000_000, id="one that is not managed"),
        pytest.param([Link("eth0", speed=10e9, said=2e9, managed=True)], 2_000_000_000, id="what an operator says"),
        pytest.param([Link("ppp0", said=40e6, said_ingress=16e6, managed=True)], 16_000_000, id="less comes in"),
    ],
)
def test_network_is_what_each_managed_link_has(links: list[Link], network: int) -> None:
    assert build.node(links={link.name: link for link in links}).capacity.network == network


def test_disks_count_once_they_were_calibrated() -> None:
    known = Disk("8:0", managed=True, read_bps=500_000_000, write_bps=300_000_000)
    slower = Disk("8:16", managed=True, read_bps=100_000_000, write_bps=400_000_000)
    disks = {"8:0": known, "8:16": slower, "8:32": Disk("8:32", managed=True)}
    capacity = build.node(disks=disks).capacity
    assert (capacity.disk_read, capacity.disk_write) == (100_000_000, 300_000_000)
    assert build.node(disks={"8:32": disks["8:32"]}).capacity == build.node().capacity


def test_a_machine_that_nobody_looked_at_has_no_measure_of_either() -> None:
    assert build.node().capacity == Resources(*build.node().capacity[:2])
    assert Link("eth0").capacity == math.inf
