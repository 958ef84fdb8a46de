"""A store on the shared cluster, without objects, and the namespaces that the conformance suite writes into."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from j10ce.store.kube.store import KubeStore
from tests.kube.store.opening import OURS, PLURALS, make_namespace, opened
from tests.lab.kube.cluster import Cluster

PATIENT_S = 150.0  # beside other runs a write may take longer than users wait: then the store says that it is unsure


@pytest.fixture(scope="session")
def namespaces(crds: Cluster) -> Cluster:
    for name in ("a", "b", "j10ce-system"):
        make_namespace(crds, name)
    return crds


@pytest.fixture
def empty(namespaces: Cluster) -> Cluster:
    for plural in PLURALS:
        for obj in namespaces.call("GET", f"{OURS}/{plural}")["items"]:
            meta = obj["metadata"]
            scope = f"namespaces/{meta['namespace']}/" if "namespace" in meta else ""
            namespaces.call("DELETE", f"{OURS}/{scope}{plural}/{meta['name']}")
    return namespaces


@pytest.fixture
async def store(empty: Cluster) -> AsyncIterator[KubeStore]:
    store = opened(empty, patience_s=PATIENT_S)
    yield store
    await store.close()
