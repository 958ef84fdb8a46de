"""The configurations of deploy/scheduler are what a stock kube-scheduler of each version reads."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kube.deploy.leftovers import DEPLOY
from tests.lab.kube.cluster import Cluster, running
from tests.lab.kube.kubernetes import Version


@pytest.fixture
def alone(version: Version, tmp_path: Path) -> Iterator[Cluster]:
    """A control plane without a scheduler."""
    with running(tmp_path, version) as cluster:
        yield cluster


def test_a_stock_scheduler_takes_the_configuration_of_its_version(alone: Cluster, version: Version) -> None:
    name = {"current": "v1", "old": "v1beta1"}[version]
    config: dict[str, Any] = yaml.safe_load((DEPLOY / f"scheduler/{name}.yaml").read_text())
    (extender,) = config["extenders"]
    extender["tlsConfig"] = {"caFile": str(alone.pki.file)}  # where this machine has one
    alone.start_scheduler(config)
    alone.wait("the scheduler", lambda: healthy(alone))
    assert "strict decoding" not in alone.log("kube-scheduler"), "it knows every field"


def healthy(cluster: Cluster) -> bool:
    trust = ssl.create_default_context(cafile=str(cluster.pki.file))
    port = cluster._serving["kube-scheduler"]
    with closing(http.client.HTTPSConnection("127.0.0.1", port, context=trust, timeout=10)) as connection:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
