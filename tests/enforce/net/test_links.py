"""Links of a real kernel: what is said of them, and that what happens to them is heard."""

from __future__ import annotations

import math

from j10ce.host.net.links import LinkTable
from tests.netns import Netns


def table(netns: Netns) -> LinkTable:
    with netns.inside():
        return LinkTable()


def test_a_link_says_what_it_is_and_that_everything_goes_by_it(netns: Netns) -> None:
    links = table(netns).now()
    eth0 = links["eth0"]
    assert list(links) == ["eth0"]
    assert (eth0.kind, eth0.routes, eth0.managed, eth0.mtu, eth0.speed) == ("veth", True, True, 1500, math.inf)
    assert eth0.mac in netns.run("ip", "-o", "link", "show", "eth0")


def test_nothing_is_read_again_until_something_changes(netns: Netns) -> None:
    here = table(netns)
    assert here.now() is here.now()


def test_a_link_that_is_renamed_goes_down_or_goes_away_is_known_to_be(netns: Netns) -> None:
    here = table(netns)
    index = here.now()["eth0"].index
    netns.ip("link", "set", "eth0", "down")
    assert not here.now()
    netns.ip("link", "set", "eth0", "name", "lan0")
    netns.ip("link", "set", "lan0", "up")
    assert {name: link.index for name, link in here.now().items()} == {"lan0": index}
    netns.ip("link", "set", "lan0", "netns", netns.peer, "name", "moved0")
    assert not here.now()


def test_a_default_route_makes_a_link_managed_and_its_end_does_not_last(netns: Netns) -> None:
    here = table(netns)
    netns.ip("route", "del", "default")
    assert not here.now()["eth0"].managed
    netns.ip("-6", "route", "add", "default", "dev", "eth0")
    assert here.now()["eth0"].managed


def test_flapping_costs_one_look_however_often(netns: Netns) -> None:
    here = table(netns)
    before = here.now()
    for _ in range(10):
        netns.ip("link", "set", "eth0", "mtu", "1400")
        netns.ip("link", "set", "eth0", "mtu", "1500")
    assert here.now() is before


def test_vlans_and_bridges_are_links(netns: Netns) -> None:
    here, kinds = table(netns), {"eth0": "veth"}
    for kind, words in (("vlan", ("link", "eth0", "type", "vlan", "id", "7")), ("bridge", ("type", "bridge"))):
        try:
            netns.ip(
                "link", "add", *(words[:2] if kind == "vlan" else ()), kind, *words[-4 if kind == "vlan" else -2 :]
            )
        except AssertionError:
            continue  # this kernel has none of them
        netns.ip("link", "set", kind, "up")
        kinds[kind] = kind
    assert {name: link.kind for name, link in here.now().items()} == kinds
