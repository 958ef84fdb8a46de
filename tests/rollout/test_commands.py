"""A rollout through a real manager process and the command line, with agents played by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from j10ce.cli.main import cli
from j10ce.errors import Invalid, NotFound
from j10ce.policy.document.document import cohort
from tests.cli.session import eventually
from tests.manager.assembled import BASE, POLICIES, policy
from tests.manager.process import end, start

NODES = [f"host-{n}" for n in range(12)]
SOURCE = "MinimalReservationPolicy/default/db"
PROFILES = f"{BASE}/qosprofiles"


def canary(percent: int, source: str = SOURCE) -> set[str]:
    return {name for name in NODES if cohort(name, source) < percent}


class Fleet:
    def __init__(self, folder: Path) -> None:
        self.folder, self.manager = folder, start(folder)
        self.options = ["--server", self.manager.server, "--token-file", str(folder / "token")]
        self.api = self.manager.client()

    def restart(self) -> None:
        """Another leader, who knows no more than the store."""
        self.close()
        self.__init__(self.folder)  # type: ignore[misc]

    def close(self) -> None:
        self.api.close()
        end(self.manager.process)

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(cli, [*self.options, *words], standalone_mode=False)

    def says(self, *words: str, code: int = 0) -> str:
        result = self.run(*words)
        assert result.exit_code == code, (words, result.output, result.exception)
        return result.output

    def get(self, path: str = f"{POLICIES}/db") -> dict[str, Any]:
        return dict(self.api.get(path).raise_for_status().json())

    def put(self, cpu: str, **rollout: Any) -> None:
        """The reservation `db`, made or edited."""
        body = policy("db", spec={"minimum": {"cpu": cpu}} | ({"rollout": rollout} if rollout else {}))
        method = self.api.put if self.api.get(f"{POLICIES}/db").status_code == 200 else self.api.post
        method(f"{POLICIES}/db" if method == self.api.put else POLICIES, json=body).raise_for_status()

    def obeys(self, node: str) -> str:
        """The CPU floor in the document of a node."""
        document = self.get(f"{BASE}/nodedocuments/{node}")
        return "".join(p["spec"]["minimum"]["cpu"] for p in document["policies"])

    def settles(self, cpu: str, on: Iterable[str], elsewhere: str = "1") -> bool:
        """Whether these nodes come to obey one floor, and all others another."""
        wanted = {name: cpu if name in on else elsewhere for name in NODES}
        return all(eventually(lambda name=name: self.obeys(name) == wanted[name]) for name in NODES)  # type: ignore[misc]

    def report(self, fault: Callable[[dict[str, Any]], str] = lambda document: "") -> None:
        """Every agent obeys its document and says so."""
        for name in NODES:
            document = self.get(f"{BASE}/nodedocuments/{name}")
            why = fault(document)
            node = {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS", "metadata": {"name": name}}
            report = {
                "heartbeat": datetime.now(UTC).isoformat(),  # noqa: TID251
                "document": document["hash"],
                "failing": {SOURCE: why} if why else {},
            }
            self.api.post(f"{BASE}/nodeqoses", json=node)
            self.api.put(f"{BASE}/nodeqoses/{name}/status", json=node | {"status": {"node": report}}).raise_for_status()

    def reason(self) -> str:
        conditions = self.get().get("status", {}).get("conditions", ())
        return next((c["reason"] for c in conditions if c["type"] == "Progressing"), "")

    def becomes(self, reason: str) -> bool:
        return eventually(lambda: self.reason() == reason)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path)
    try:
        made.report()
        made.put("1")
        assert eventually(lambda: made.get().get("status", {}).get("rollout", {}).get("stable") == 1)
        made.report()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Nobody changes anything here."""
    made = Fleet(tmp_path_factory.mktemp("quiet"))
    try:
        made.put("1")
        yield made
    finally:
        made.close()


def failing(document: dict[str, Any]) -> str:
    return "cpu.weight was refused" if any(p["spec"]["minimum"]["cpu"] == "2" for p in document["policies"]) else ""


def test_a_canary_takes_it_and_the_operator_goes_on(fleet: Fleet) -> None:
    fleet.put("2", canaryPercent=40)
    assert fleet.becomes("Reaching")
    assert fleet.settles("2", canary(40))
    fleet.report()
    output = fleet.says("rollout", "status", "mrp/db", "--watch")
    assert "Canary" in output
    assert f"{len(canary(40))} of {len(canary(40))} nodes obey revision 2" in output
    assert fleet.settles("2", canary(40))
    described = fleet.says("describe", "mrp", "db")
    assert "Phase:       Active" in described
    assert f"{len(canary(40))} wanted, {len(canary(40))} applied, 0 failing, 0 not reporting" in described
    assert "Rollout:     revision 2 has reached 40 % of the cohorts; stable is 1" in described
    fleet.put("2", canaryPercent=100)
    assert fleet.settles("2", NODES)


def test_it_stops_by_itself_survives_another_leader_and_is_undone(fleet: Fleet) -> None:
    fleet.put("2", canaryPercent=40)
    assert fleet.becomes("Reaching")
    assert fleet.settles("2", canary(40))
    fleet.report(failing)
    output = fleet.says("rollout", "status", "mrp/db", "--watch", code=1)
    assert "Stopped" in output
    assert "cpu.weight was refused" in output
    assert fleet.settles("1", NODES), "who fails goes back"
    fleet.restart()
    fleet.report(failing)
    assert fleet.settles("1", NODES)
    assert "went back: " + ", ".join(sorted(canary(40))) in fleet.says("describe", "mrp", "db")
    history = fleet.says("rollout", "history", "mrp", "db").splitlines()
    assert [line.split()[0] for line in history[1:]] == ["1", "2"]
    assert "stable" in history[1]
    assert "present" in history[2]
    assert "minimum,rollout" in history[2]
    spec = fleet.says("rollout", "history", "minimalreservationpolicy", "default/db", "--revision", "1")
    assert "cpu: '1'" in spec
    assert "revision 1, as revision 3" in fleet.says("rollout", "undo", "mrp/db")
    assert fleet.get()["spec"] == {"minimum": {"cpu": "1"}}
    assert eventually(lambda: fleet.get()["status"]["rollout"]["stable"] == 3)


def test_a_policy_that_is_paused_when_all_nodes_have_it_is_shown_as_paused(fleet: Fleet) -> None:
    assert "paused" in fleet.says("rollout", "pause", "mrp/db")
    assert fleet.becomes("Complete")
    output = fleet.says("rollout", "status", "mrp/db", "--watch", code=1)
    assert "paused: the next change waits for `rollout resume`" in output
    fleet.says("rollout", "status", "mrp/db", code=1)
    fleet.says("rollout", "resume", "mrp/db")
    fleet.says("rollout", "status", "mrp/db", "--watch")


def test_what_stopped_is_tried_again_and_what_is_paused_goes_on(fleet: Fleet) -> None:
    fleet.put("2", canaryPercent=40)
    assert fleet.becomes("Reaching")
    assert fleet.settles("2", canary(40))
    fleet.report(failing)
    assert fleet.becomes("Stopped")
    assert "resumed" in fleet.says("rollout", "resume", "mrp/db")
    assert fleet.get()["spec"]["rollout"] == {"canaryPercent": 40, "attempt": 1}
    assert fleet.settles("2", canary(40))
    fleet.report()
    assert fleet.becomes("Canary")
    assert "paused" in fleet.says("rollout", "pause", "mrp/db")
    assert fleet.becomes("Paused")
    assert "Paused" in fleet.says("rollout", "status", "mrp/db", code=1)
    assert "resumed" in fleet.says("rollout", "resume", "mrp/db")
    assert "neither paused nor stopped" in fleet.says("rollout", "resume", "mrp/db")
    fleet.put("3", canaryPercent=0)
    assert fleet.becomes("NoCanary")
    assert "nobody takes it" in fleet.says("rollout", "status", "mrp/db", "--watch", code=1)


def test_profiles_have_a_history_too(fleet: Fleet) -> None:
    before = fleet.get(f"{PROFILES}/ls")
    edited = before | {"spec": before["spec"] | {"priority": 7}}
    fleet.api.put(f"{PROFILES}/ls", json=edited).raise_for_status()
    assert eventually(lambda: len(fleet.says("rollout", "history", "qosprofile/ls").splitlines()) == 3)
    assert "says the same" in fleet.says("rollout", "undo", "qos/LS", "--to-revision", "2")
    fleet.says("rollout", "undo", "qos/LS")
    assert fleet.get(f"{PROFILES}/ls")["spec"] == before["spec"]
    fleet.report()
    assert "12 of 12 nodes obey revision 3" in fleet.says("rollout", "status", "qos/ls", "--watch")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        pytest.param(("status", "node/host-1"), Invalid, id="no policy"),
        pytest.param(("status", "mrp"), Invalid, id="no name"),
        pytest.param(("status", "mrp/nobody"), NotFound, id="nobody"),
        pytest.param(("undo", "mrp/db", "--to-revision", "9"), NotFound, id="a revision that is not kept"),
        pytest.param(("undo", "mrp/db"), NotFound, id="nothing before"),
    ],
)
def test_what_cannot_be_done_says_why(quiet: Fleet, words: tuple[str, ...], error: type[Exception]) -> None:
    assert isinstance(quiet.run("rollout", *words).exception, error)
