"""A real node whose links are those of a network namespace, and an agent there: nothing of this machine's is shaped.

`eth0` of that namespace is the node's uplink; by `api0` its agent reaches the API server.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kube.agent.installed import Installed, PodAgent
from tests.lab.kube.cluster import FOR_PODS, running
from tests.lab.kube.kubernetes import Version
from tests.lab.kube.node import joined
from tests.netns import Netns, ip

HERE, THERE = "169.254.77.1", "169.254.77.2"  # both ends of the way to the API server


@pytest.fixture(scope="package")
def uplink() -> Iterator[Netns]:
    if os.geteuid():
        pytest.skip("Unsupported: a real node needs root")
    netns = Netns()
    at_home = f"j10t{os.getpid()}"[:15]
    netns.build()
    try:
        pair = ("link", "add", at_home, "type", "veth", "peer", "name", "api0", "netns", netns.name)
        assert not ip(*pair)
        for words in (("addr", "add", f"{HERE}/30", "dev", at_home), ("link", "set", at_home, "up")):
            assert not ip(*words)
        netns.ip("addr", "add", f"{THERE}/30", "dev", "api0")
        netns.ip("link", "set", "api0", "up")
        netns.ip("route", "add", FOR_PODS, "via", HERE)
        netns.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        yield netns
    finally:
        with suppress(subprocess.CalledProcessError):
            subprocess.run(["ip", "link", "del", at_home], check=True, capture_output=True)
        netns.clear()


@pytest.fixture(scope="package")
def lab(uplink: Netns, version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("network")
    with running(folder, version, for_pods=True) as cluster, joined(cluster, uplink.name) as node:
        installed = Installed(cluster, node)
        installed.install()
        yield installed


@pytest.fixture
def agent(lab: Installed, uplink: Netns, tmp_path: Path, clone: Path) -> Iterator[PodAgent]:
    one = PodAgent(tmp_path, clone, lab)
    one.inside = ("nsenter", f"--net=/run/netns/{uplink.name}")
    one.configure()
    yield one
    one.clean()
    lab.tidy()
