"""One etcd for all quick tests of a session; every test writes below a prefix of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.etcd.cluster import Cluster, running


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("etcd"), count=1) as cluster:
        yield cluster


@pytest.fixture
def url(etcd: Cluster) -> str:
    """Of an empty store."""
    return f"{etcd.url}/{uuid.uuid4().hex}"
