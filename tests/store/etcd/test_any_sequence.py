"""Invariant 8 on a real etcd, with processes that come and go: any sequence of operations, seen through any of them."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import settings
from hypothesis.stateful import rule, run_state_machine_as_test

from j10ce.store.etcd.address import read_address
from j10ce.store.etcd.store import EtcdStore
from j10ce.store.store import Store
from j10ce.testing.build import WALL
from tests.etcd.cluster import Cluster
from tests.store.test_any_sequence import KEPT, AnyStore


def machine(etcd: Cluster) -> type[AnyStore]:
    class AnyEtcd(AnyStore):
        def __init__(self) -> None:
            self.url = f"{etcd.url}/{uuid.uuid4().hex}"
            super().__init__()

        async def open(self) -> Store:
            return EtcdStore(read_address(self.url), lambda: WALL, kept=KEPT)

        @rule()
        def go_on_with_another_process(self) -> None:
            self.run(self.store.close())
            self.store = self.run(self.open())

    return AnyEtcd


@pytest.mark.slow
def test_any_sequence_of_operations(etcd: Cluster) -> None:
    run_state_machine_as_test(machine(etcd), settings=settings(max_examples=20, stateful_step_count=30, deadline=None))
