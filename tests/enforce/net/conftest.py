from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.enforce.net.pods import Pods
from tests.enforce.net.shaping import Shaped
from tests.enforce.workbench import Workbench
from tests.netns import Netns


@pytest.fixture
def netns() -> Iterator[Netns]:
    """A link `eth0` of this test's own, with somebody at its other end."""
    netns = Netns()
    try:
        netns.build()
        yield netns
    finally:
        netns.clear()


@pytest.fixture
def shaped(netns: Netns, work: Workbench, tmp_path: Path) -> Shaped:
    """With cgroups for `api` and `sync`, and nothing queued for as yet."""
    return Shaped(netns, work, tmp_path / "journal")


@pytest.fixture
def pods(shaped: Shaped) -> Iterator[Pods]:
    pods = Pods(shaped)
    try:
        pods.build()
        yield pods
    finally:
        pods.clear()


@pytest.fixture
def both_ways(pods: Pods) -> Pods:
    """What comes in is divided, too, and the peer knows where pods are."""
    if needs := pods.shaped.support["ingress"].needs:
        pytest.skip(f"Unsupported: what comes in needs {needs}")
    pods.netns.ip("route", "add", "198.51.100.0/24", "via", "192.0.2.1", at=pods.netns.peer)
    pods.netns.ip("route", "add", "fd00:90d::/64", "via", "fd00:c0de::1", at=pods.netns.peer)
    return pods
