"""Pods of a real node, with CNI `ptp` and in the host's network, have what they are promised of its uplink."""

from __future__ import annotations

import re
from typing import Final

import pytest

from j10ce.model.kinds import API_VERSION
from tests.agent.process import eventually
from tests.kube.agent.installed import APPLY, BASE, Installed, PodAgent
from tests.kube.agent.test_pods import QOS
from tests.netns import Netns

PING: Final = ["/bin/ping", "-q", "-i", "1", "-s", "1000", "192.0.2.2"]
FLOOR, CEILING = "200Mbit 1099Gbit", "128bit 50Mbit"  # of a class: its rate and its ceiling
pytestmark = pytest.mark.one_version


def promised(lab: Installed) -> None:
    """The uplink carries 1 Gbit/s; `api` and `host` have a floor of it each, `sync` a ceiling."""
    links = {"network": {"links": {"eth0": {"egress": "1Gbit", "ingress": "1Gbit"}}}}
    body = {"apiVersion": API_VERSION, "kind": "NodeStrategy", "metadata": {"name": "uplink"}, "spec": links}
    lab.cluster.call("PATCH", f"{BASE}/nodestrategies/uplink?fieldManager=tests", body, content=APPLY)
    lab.profile("slow", tier="besteffort", network={"ceiling": "50Mbit"})
    for name in ("api", "host"):
        lab.policy(name, selector={"matchLabels": {"app": name}}, minimum={"network": "200Mbit"})


def classes(net: Netns) -> dict[str, str]:
    """Rate and ceiling of the node's uplink's classes, by class."""
    shown = net.run("tc", "class", "show", "dev", "eth0")
    return {m[1]: f"{m[2]} {m[3]}" for m in re.finditer(r"class htb 10ce:(\w+) .*rate (\w+) ceil (\w+) ", shown)}


def of(net: Netns, rates: str) -> int:
    """Packets that left in classes with that rate and ceiling; the fewest, where there are several."""
    shown, by = net.run("tc", "-s", "class", "show", "dev", "eth0"), classes(net)
    left = re.finditer(r"class htb 10ce:(\w+) .*\n Sent \d+ bytes (\d+) pkt", shown)
    return min((int(m[2]) for m in left if by.get(m[1]) == rates), default=0)


def promise(agent: PodAgent, name: str) -> list[str]:
    """What its floor of the network is worth."""
    held = agent.workloads()[name]["status"].get("effective", [])
    return [f["effective"] for f in held if f["resource"] == "network"]


def test_pods_with_and_without_a_network_of_their_own_are_in_classes_of_theirs(
    lab: Installed, agent: PodAgent, uplink: Netns
) -> None:
    promised(lab)
    agent.begin()
    lab.node.run("api", labels={"app": "api"}, command=PING)
    lab.node.run("host", labels={"app": "host"}, command=PING, hostNetwork=True)
    lab.node.run("sync", labels={QOS: "slow"}, command=PING)
    assert agent.knows("api", "host", "sync")
    assert eventually(lambda: promise(agent, "api") == promise(agent, "host") == ["200M"])
    assert eventually(lambda: sorted(classes(uplink).values()).count(FLOOR) == 2)
    assert eventually(lambda: min(of(uplink, FLOOR), of(uplink, CEILING)) > 3), "each pod's packets are in its class"
    text = agent.client.get("/v1/explain", target="workload/default/sync", knob="network")["text"]
    assert re.search("its door is veth[0-9a-f]+: sends at most 50Mbit and receives at most 50Mbit", text), text

    lab.node.delete("sync")
    assert eventually(lambda: uplink.run("ip", "link", "show").count("j10ce-i") == 1), "that of the uplink alone"
