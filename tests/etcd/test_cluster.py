"""The cluster that other tests build on does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.etcd.cluster import running


@pytest.mark.slow
def test_a_killed_leader_is_replaced_and_comes_back(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        first = cluster.leader()
        cluster.kill(first)
        second = cluster.leader()
        assert second != first
        cluster.pause(second)  # one of three is left: nobody can lead
        cluster.restart(first)
        assert cluster.leader() != second
        cluster.resume(second)
        cluster.wait(second)
        assert cluster.ask(second, "/v3/maintenance/status")["version"].startswith("3.")
