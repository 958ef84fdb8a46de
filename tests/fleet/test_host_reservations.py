"""Units of a policy on a fleet of real managers and real agents: held, used, moved with their node's loss."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.fleet.fleet import Fleet
from tests.fleet.managers import eventually, policies, reservation

pytestmark = [pytest.mark.host, pytest.mark.timeout(600)]

LOST_S = 90.0  # a node is lost after 40 s of silence


def status(fleet: Fleet, name: str) -> Any:
    return fleet.managers.leader().client.get(f"{policies()}/{name}").get("status", {})


def witness(fleet: Fleet, name: str) -> dict[str, int]:
    return {w["node"]: w["units"] for w in status(fleet, name).get("witness", ())}


def condition(fleet: Fleet, name: str, kind: str) -> Any:
    return next((c for c in status(fleet, name).get("conditions", ()) if c["type"] == kind), {})


def held(fleet: Fleet, name: str) -> dict[str, int]:
    """As the agents hold it in their own ledgers."""
    source = f"MinimalReservationPolicy/default/{name}"
    nodes = fleet.managers.leader().client.get("/apis/j10ce.io/v1alpha1/nodeqoses")["items"]
    return {
        node["metadata"]["name"]: r["units"]
        for node in nodes
        for r in node["status"]["node"].get("reservations", ())
        if r["source"] == source and r.get("units")
    }


def test_units_are_held_used_and_survive_leader_and_node(fleet: Fleet) -> None:
    fleet.managers.leader().client.post(policies(), reservation("db", cpu="300m", units=2))
    assert eventually(lambda: sum(witness(fleet, "db").values()) == 2), status(fleet, "db")
    assert eventually(lambda: held(fleet, "db") == witness(fleet, "db"), 30.0), held(fleet, "db")

    fleet.managers.leader().client.post(policies(), reservation("thief", cpu="300m", units=9))
    assert eventually(lambda: condition(fleet, "thief", "Admitted").get("reason") == "NamespaceLimit")

    empty = next(agent for agent in fleet.agents if agent.name not in witness(fleet, "db"))
    empty.place("db-1", labels={"app": "db"})
    assert eventually(lambda: status(fleet, "db")["units"].get("used") == 1, 30.0), status(fleet, "db")
    assert witness(fleet, "db")[empty.name] == 1, "the unit follows its workload"
    assert eventually(lambda: held(fleet, "db") == witness(fleet, "db"), 30.0), held(fleet, "db")

    before, leader = witness(fleet, "db"), fleet.managers.leader()
    leader.kill()
    assert fleet.managers.leader() is not leader
    fleet.managers.leader().client.post(policies(), reservation("late", cpu="10m", units=1))
    assert eventually(lambda: condition(fleet, "late", "Admitted").get("status") == "True"), status(fleet, "late")
    assert witness(fleet, "db") == before, "a new leader moves nothing"
    leader.launch()
    leader.wait()

    lost = next(agent for agent in fleet.agents if agent.name in before and agent is not empty)
    lost.stop(signal.SIGKILL)
    assert eventually(lambda: lost.name not in witness(fleet, "db"), LOST_S), status(fleet, "db")
    assert sum(witness(fleet, "db").values()) == 2
    assert condition(fleet, "db", "Degraded")["status"] == "False"
    fleet.start_agent(lost)
