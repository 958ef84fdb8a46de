"""An API server with our CRDs behaves as the seams say."""

from __future__ import annotations

import time

import pytest

from j10ce.errors import NotFound
from j10ce.store.kube.elector import NAME, kube_elector
from j10ce.store.kube.store import KubeStore
from j10ce.testing.conformance_elector import Elect, ElectorConformance, Steal
from j10ce.testing.conformance_store import StoreConformance

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/j10ce-system/leases/{NAME}"
pytestmark = pytest.mark.kube


class TestStore(StoreConformance):
    many = 1_000


class TestElector(ElectorConformance):
    @pytest.fixture
    async def elect(self, store: KubeStore) -> Elect:
        try:
            await store.client.delete(LEASE)
        except NotFound:
            pass
        return lambda name, ttl_s: kube_elector(store.client, name, time.time, ttl_s=ttl_s)  # noqa: TID251

    @pytest.fixture(params=["deleted", "taken"])
    def steal(self, request: pytest.FixtureRequest, store: KubeStore) -> Steal:
        async def take() -> None:
            spec = {"holderIdentity": "thief", "leaseDurationSeconds": 1, "leaseTransitions": 100}
            await store.client.patch(LEASE, {"spec": spec}, "merge")

        return take if request.param == "taken" else lambda: store.client.delete(LEASE)
