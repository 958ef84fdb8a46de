"""The commands of an operator against a real manager process, with agents played by the test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from j10ce.cli.main import cli
from j10ce.errors import Conflict, Invalid, NotFound
from j10ce.model.kinds import NodeQoS
from j10ce.model.machine import topology
from j10ce.model.schema import plain
from j10ce.testing import build
from tests.cli.session import eventually
from tests.manager.process import Running, end, start
from tests.scheduler.place.fleet import node, quantities

BASE = "/apis/j10ce.io/v1alpha1"
EXAMPLE = "examples/fleet/workload.yaml"


class Fleet:
    def __init__(self, manager: Running, folder: Path, clone: Path) -> None:
        self.manager, self.clone = manager, clone
        self.options = ["--server", manager.server, "--token-file", str(folder / "token")]

    def run(self, *words: str, stdin: str = "") -> Result:
        return CliRunner().invoke(cli, [*self.options, *words], input=stdin, standalone_mode=False)

    def says(self, *words: str, stdin: str = "") -> str:
        result = self.run(*words, stdin=stdin)
        assert result.exception is None, (words, result.output, result.exception)
        return result.output

    def report(self, made: NodeQoS) -> None:
        """As its agent would: introduce it when it is unknown, then put its status."""
        heard = replace(made.status.node, heartbeat=datetime.now(UTC))  # noqa: TID251
        body = plain(replace(made, status=replace(made.status, node=heard)))
        with self.manager.client() as client:
            client.post(f"{BASE}/nodeqoses", json={k: body[k] for k in ("apiVersion", "kind", "metadata")})
            client.put(f"{BASE}/nodeqoses/{made.metadata.name}/status", json=body).raise_for_status()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, clone: Path) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("place")
    manager = start(folder)
    try:
        made = Fleet(manager, folder, clone)
        made.report(measured("host-1", "6"))
        made.report(measured("host-2", "1"))
        yield made
    finally:
        end(manager.process)


def measured(name: str, reserved: str) -> NodeQoS:
    made = node(name, reserved={"cpu": reserved, "memory": "1Gi"})
    report = replace(
        made.status.node,
        usage={"cpu": quantities({"p50": "1", "p95": "2", "p98": "2500m", "max": "3"})},
        demand={"cpu": quantities({"system": "100m", "usage": "1", "request": "4", "larger": "4"})},
        predicted={"cpu": quantities({"node": "3", "protected": "2"})},
        pressure={"cpu": 0.25},
        topology=topology.report(build.topology(4, per_l3=2)),
    )
    return replace(made, status=replace(made.status, node=report))


def test_nodes_are_listed_with_their_state(fleet: Fleet) -> None:
    assert fleet.says("get", "nodes", "-o", "wide").splitlines()[0].split()[:4] == [
        "NAME",
        "READY",
        "CORDONED",
        "ARMED",
    ]
    assert fleet.says("get", "node", "host-1").splitlines()[1].split()[0] == "host-1"


def test_a_workload_is_placed_and_its_floor_held(fleet: Fleet) -> None:
    example = str(fleet.clone / EXAMPLE)
    whatif = fleet.says("place", "-f", example, "--dry-run", "--explain")
    assert whatif.startswith("default/web: host-2\n  host-2 is the best of 2 that fit among 2 nodes\n")
    assert "least-promised" in whatif
    assert "total" in whatif
    placed = fleet.says("place", "-f", example, "--for", "1h")
    assert "MinimalReservationPolicy/default/placement-web holds cpu 250m until" in placed
    assert json.loads(fleet.says("place", "-f", example, "-o", "json"))["node"] == "host-2", "asking again is safe"
    held = json.loads(fleet.says("get", "mrp", "placement-web", "-o", "json"))
    assert held["spec"]["ttl"] == "1h"
    fleet.says("delete", "mrp", "placement-web")


def test_what_does_not_fit_says_why(fleet: Fleet) -> None:
    wish = (fleet.clone / EXAMPLE).read_text().replace("250m", "7500m").replace("500m\n    memory", "7500m\n    memory")
    refused = fleet.run("place", "-f", "-", stdin=wish.replace("name: web", "name: huge"))
    assert isinstance(refused.exception, Conflict)
    assert "cpu 7500m wanted" in str(refused.exception)
    dry = fleet.run("place", "-f", "-", "--dry-run", "--explain", stdin=wish)
    assert isinstance(dry.exception, Conflict)
    assert "free of 7600m" in dry.output


def test_a_cordoned_node_is_not_chosen(fleet: Fleet) -> None:
    example = str(fleet.clone / EXAMPLE)
    assert fleet.says("cordon", "node", "host-2") == "node/host-2 cordoned\n"
    assert fleet.says("cordon", "host-2") == "node/host-2 is cordoned already\n"
    output = fleet.says("place", "-f", example, "--dry-run", "--explain")
    assert output.startswith("default/web: host-1\n")
    assert "uncordon host-2" in output
    assert fleet.says("uncordon", "host-2") == "node/host-2 uncordoned\n"
    assert fleet.says("place", "-f", example, "--dry-run").startswith("default/web: host-2\n")
    assert isinstance(fleet.run("cordon", "host-9").exception, NotFound)


def test_only_workloads_can_be_placed(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        "apiVersion: j10ce.io/v1alpha1\nkind: QoSProfile\nmetadata: {name: x}\nspec: {tier: standard}\n"
    )
    assert isinstance(fleet.run("place", "-f", str(tmp_path / "p.yaml")).exception, Invalid)


def test_a_node_is_described_with_every_term(fleet: Fleet) -> None:
    assert eventually(lambda: "batch-cpu" in fleet.says("describe", "node", "host-1"))
    output = fleet.says("describe", "node", "host-1")
    assert "Schedulable: yes" in output
    assert "Pressure:    cpu 25.0%" in output
    assert "CPUs:        1 socket, 4 cores, 8 threads, 1 NUMA node, 2 L3 caches: 0-1,4-5 and 2-3,6-7\n" in output
    row = next(line for line in output.splitlines() if line.split()[:1] == ["cpu"])
    assert row.split() == ["cpu", "8", "6", "1", "2", "2500m", "3", "3", "2"]
    assert next(line for line in output.splitlines() if line.split()[:1] == ["memory"]).split()[1:3] == ["32Gi", "1Gi"]
    rows = {tuple(line.split()[:2]): line for line in output.splitlines()}
    assert ("batch-cpu", "3400m") in rows, output
    assert "everyone together stays within 60 %" in rows["−", "margin"]
