"""Two real managers on a real etcd: whoever is asked, the last room is given away once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import httpx2 as httpx
import pytest
from msgspec.structs import replace

from j10ce.model.kinds import NodeQoS
from j10ce.model.schema import plain
from tests.etcd.cluster import running
from tests.manager.process import Running, end, start
from tests.scheduler.place.fleet import node, workload

pytestmark = [pytest.mark.lab, pytest.mark.slow]
BASE = "/apis/j10ce.io/v1alpha1"
NODES, ASKING = 5, 12


@pytest.fixture
def managers(tmp_path: Path) -> Iterator[list[Running]]:
    made: list[Running] = []
    with running(tmp_path / "etcd", 1) as etcd:
        try:
            for n in range(2):
                folder = tmp_path / f"manager-{n}"
                folder.mkdir()
                (folder / "token").write_text("sesame-sesame-sesame-sesame")
                (folder / "token").chmod(0o600)
                made.append(start(folder, "--identity", f"manager-{n}", "--store", etcd.url))
            yield made
        finally:
            for manager in made:
                end(manager.process)


def report(client: httpx.Client, made: NodeQoS) -> None:
    heard = replace(made.status.node, heartbeat=datetime.now(UTC))  # noqa: TID251
    body = plain(replace(made, status=replace(made.status, node=heard)))
    client.post(f"{BASE}/nodeqoses", json={k: body[k] for k in ("apiVersion", "kind", "metadata")}).raise_for_status()
    client.put(f"{BASE}/nodeqoses/{made.metadata.name}/status", json=body).raise_for_status()


def test_the_last_room_is_given_away_once(managers: list[Running]) -> None:
    with managers[0].client() as client:
        for n in range(NODES):
            report(client, node(f"n{n}", cpu="5"))  # room for one of 4 CPUs
    with ThreadPoolExecutor(ASKING) as pool:
        answers = list(pool.map(lambda n: ask(managers[n % 2], n), range(ASKING)))
    placed = Counter(a.json()["node"] for a in answers if a.status_code == 201)
    assert placed == {f"n{n}": 1 for n in range(NODES)}, [a.text for a in answers]
    assert Counter(a.status_code for a in answers) == {201: NODES, 409: ASKING - NODES}
    with managers[1].client() as client:
        held = client.get(f"{BASE}/minimalreservationpolicies").json()["items"]
    assert len(held) == NODES, "what was refused was taken back"


def ask(manager: Running, n: int) -> httpx.Response:
    """In a namespace of its own: one alone may not reserve so much of the fleet."""
    with manager.client() as client:
        return client.post(f"{BASE}/namespaces/team-{n}/placements", json=plain(workload(f"w{n}", cpu="4")))
