"""Strategies are rolled out as profiles are: canary, stop, undo and history, by the command line and a real manager."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from j10ce.cli.main import cli
from j10ce.manager.documents.documents import Documents
from j10ce.manager.policies.reports import Reports
from j10ce.model.kinds import Meta, NodeQoS, NodeQoSStatus, NodeReport, NodeStrategy, Object
from j10ce.model.stored import Event, key_of
from j10ce.policy.document.document import FORMAT, cohort
from j10ce.testing.build import WALL, profile, strategy
from tests.cli.session import eventually
from tests.hearing import by_heartbeat
from tests.manager.assembled import BASE
from tests.manager.process import end, start

NODES = [f"host-{n}" for n in range(8)]
SOURCE = "NodeStrategy/everywhere"
EXAMPLE = str(Path(__file__).parents[2] / "examples/fleet/strategy.yaml")
PATH = f"{BASE}/nodestrategies/everywhere"
MERGE = {"content-type": "application/merge-patch+json"}


class Fleet:
    """A manager with the example applied; agents are played by the test."""

    def __init__(self, folder: Path) -> None:
        self.manager = start(folder)
        self.options = ["--server", self.manager.server, "--token-file", str(folder / "token")]
        self.api = self.manager.client()

    def close(self) -> None:
        self.api.close()
        end(self.manager.process)

    def says(self, *words: str, code: int = 0) -> str:
        result = CliRunner().invoke(cli, [*self.options, *words], standalone_mode=False)
        assert result.exit_code == code, (words, result.output, result.exception)
        return result.output

    def threshold(self, node: str) -> int:
        document = self.api.get(f"{BASE}/nodedocuments/{node}").json()
        every = {s["metadata"]["name"]: s["spec"]["suppress"] for s in document["strategies"]}
        return int(every.get("everywhere", {}).get("thresholdPercent", 0))

    def report(self, fails: int = 0) -> None:
        """Every agent obeys its document and says so; whoever obeys this threshold fails with it."""
        for name in NODES:
            node = {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS", "metadata": {"name": name}}
            document = self.api.get(f"{BASE}/nodedocuments/{name}").json()
            report: dict[str, Any] = {
                "heartbeat": datetime.now(UTC).isoformat(),  # noqa: TID251
                "document": document["hash"],
                "failing": {SOURCE: "it does not fit"} if self.threshold(name) == fails else {},
            }
            self.api.post(f"{BASE}/nodeqoses", json=node)
            self.api.put(f"{BASE}/nodeqoses/{name}/status", json=node | {"status": {"node": report}}).raise_for_status()

    def edit(self, threshold: int, canary: int) -> None:
        spec = {"suppress": {"thresholdPercent": threshold}, "rollout": {"canaryPercent": canary}}
        self.api.patch(PATH, json={"spec": spec}, headers=MERGE).raise_for_status()

    def stable(self) -> int:
        return int(self.api.get(PATH).json().get("status", {}).get("rollout", {}).get("stable", 0))


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path)
    try:
        assert made.says("apply", "-f", EXAMPLE).split("\n")[0] == "nodestrategy/everywhere created"
        made.report()
        assert eventually(lambda: made.stable() == 1)
        made.report()
        yield made
    finally:
        made.close()


def test_a_canary_takes_it_fails_and_is_undone(fleet: Fleet) -> None:
    share = max(sorted(cohort(name, SOURCE) for name in NODES)[2] + 1, 1)
    few = {name for name in NODES if cohort(name, SOURCE) < share}
    fleet.edit(70, share)
    assert eventually(lambda: {n for n in NODES if fleet.threshold(n) == 70} == few)
    assert {fleet.threshold(n) for n in NODES if n not in few} == {65}
    fleet.report(fails=70)
    assert "Stopped" in fleet.says("rollout", "status", "nst/everywhere", "--watch", code=1)
    assert eventually(lambda: {fleet.threshold(n) for n in NODES} == {65}), "those that failed went back"
    assert "rollout,suppress" in fleet.says("rollout", "history", "nodestrategy", "everywhere")
    assert "as revision 3" in fleet.says("rollout", "undo", "nst/everywhere")
    assert eventually(lambda: {fleet.threshold(n) for n in NODES} == {65})


def test_the_example_is_shown_where_it_is_in_force_and_by_whom(fleet: Fleet) -> None:
    assert "batch-pool" in fleet.says("get", "nst")
    assert "NodeStrategy" in fleet.says("describe", "nodestrategy", "batch-pool")
    labelled = {"spec": {"labels": {"pool": "batch"}}}
    fleet.api.patch(f"{BASE}/nodeqoses/{NODES[0]}", json=labelled, headers=MERGE).raise_for_status()

    def rows() -> list[list[str]]:
        return [line.split() for line in fleet.says("describe", "node", NODES[0]).splitlines()]

    assert eventually(lambda: ["suppress.thresholdPercent", "85", "NodeStrategy/batch-pool"] in rows())
    assert ["eviction.mode", "enforce", "NodeStrategy/batch-pool"] in rows()
    assert ["suppress.mode", "auto", "NodeStrategy/everywhere"] in rows()
    assert "nodestrategy/batch-pool deleted" in fleet.says("delete", "nst", "batch-pool")
    assert eventually(lambda: ["suppress.thresholdPercent", "65", "NodeStrategy/everywhere"] in rows())


# -- agents of the format before


def test_an_agent_of_the_format_before_obeys_all_but_strategies() -> None:
    documents = Documents()
    reports = Reports(documents, by_heartbeat(lambda: WALL))
    held: dict[object, Object] = {}

    def put(obj: Object) -> None:
        event = Event("MODIFIED" if key_of(obj) in held else "ADDED", obj, "", held.get(key_of(obj)))
        held[key_of(obj)] = obj
        reports.take(event, documents.take(event))

    gold, pool = profile("gold"), strategy("pool", {"suppress": {"mode": "quota"}})
    for obj in (gold, pool, NodeQoS(metadata=Meta(name="old")), NodeQoS(metadata=Meta(name="new"))):
        put(obj)
    for name, format_ in (("old", FORMAT - 1), ("new", FORMAT)):
        heartbeat = datetime.fromtimestamp(WALL, UTC)
        report = NodeReport(heartbeat=heartbeat, document=documents.of(name, format_).hash)
        put(NodeQoS(metadata=Meta(name=name), status=NodeQoSStatus(node=report)))
    reports.look()
    assert reports.standing(gold).seen.applied == 2
    assert isinstance(held[key_of(pool)], NodeStrategy)
    assert reports.standing(pool).seen.applied == 1
    put(replace(pool, spec=replace(pool.spec, priority=3), metadata=replace(pool.metadata, generation=2)))
    assert reports.standing(gold).seen.applied == 2, "what concerns strategies alone costs nobody its standing"
