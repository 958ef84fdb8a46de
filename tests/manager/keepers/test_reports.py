"""What one node says of itself stops nobody else: refused at the door, and left out where it came another way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from msgspec.structs import replace
from prometheus_client.core import GaugeMetricFamily

from j10ce.agent.report.report import node_report
from j10ce.manager.documents import fleet_metrics
from j10ce.model.kinds import Condition, Meta, NodeQoS, NodeQoSStatus
from j10ce.model.quantity import Quantity
from j10ce.model.schema import convert, plain
from j10ce.policy.document.document import render
from j10ce.policy.profiles import builtin
from j10ce.policy.validation.reported import report_findings
from j10ce.store.memory import MemoryStore
from j10ce.testing import build as make
from j10ce.testing.build import WALL, reservation
from tests.agent.whole_ring import Ring
from tests.manager.assembled import assemble
from tests.manager.keepers.world import Agent, Manager, condition, placed
from tests.scheduler.place.fleet import workload

BASE = "/apis/j10ce.io/v1alpha1"
DB = "MinimalReservationPolicy/default/db"
HUGE = 9_000_000_000_000_000_000
NONSENSE: list[Any] = [
    pytest.param({"reservations": [{"source": DB, "charged": 2**53}]}, "charged", id="more workloads than numbers"),
    pytest.param({"reservations": [{"source": DB, "units": -1}]}, "units", id="fewer units than none"),
    pytest.param({"reservations": [{"source": "nonsense", "charged": 1}]}, "source", id="a source that is none"),
    pytest.param({"reservations": [{"source": "A/b/c/d"}]}, "source", id="a source of too many parts"),
    pytest.param({"reservations": [{"source": DB, "amount": {"cpu": "50%"}}]}, "amount.cpu", id="a share of what"),
    pytest.param({"demand": {"gpu": {"usage": "1"}}}, "demand.gpu", id="demand of an unknown resource"),
    pytest.param({"usage": {"gpu": {"p95": "1"}}}, "usage.gpu", id="use of an unknown resource"),
    pytest.param({"predicted": {"gpu": {"node": "1"}}}, "predicted.gpu", id="a peak of an unknown resource"),
    pytest.param({"capacity": {"cpu": str(HUGE)}}, "capacity.cpu", id="more CPUs than there are"),
    pytest.param({"capacity": {"memory": "4Ei"}}, "capacity.memory", id="more memory than there is"),
    pytest.param({"reserved": {"cpu": str(HUGE)}}, "reserved.cpu", id="more reserved than there is"),
    pytest.param({"bestEffort": {"cores": "1"}}, "bestEffort.cores", id="best effort of an unknown resource"),
    pytest.param({"claimed": {"Not A Namespace": {"cpu": "1"}}}, "claimed", id="a namespace that is none"),
    pytest.param({"claimed": {"default": {"cpu": str(HUGE)}}}, "claimed.default.cpu", id="claims beyond any machine"),
    pytest.param({"workloads": -5}, "workloads", id="fewer workloads than none"),
    pytest.param({"pressure": {"cpu": -1.0}}, "pressure.cpu", id="a pressure below nothing"),
    pytest.param(
        {"effective": [{"node": "n9", "workload": "a/b", "resource": "cpu", "promised": "1", "effective": "1"}]},
        "effective[0].node",
        id="floors of another node",
    ),
]


async def say(manager: Manager, name: str, told: dict[str, Any]) -> None:
    """Past the door, as an agent on Kubernetes writes, or an earlier release has."""
    found = manager.node(name)
    report = convert({**plain(found.status.node), **told}, type(found.status.node))
    await manager.store.put(replace(found, status=replace(found.status, node=report)), part="status")
    await manager.caught_up()


@pytest.mark.parametrize(("told", "where"), NONSENSE)
async def test_a_report_that_makes_no_sense_is_refused_with_what_and_where(told: dict[str, Any], where: str) -> None:
    made = assemble(MemoryStore(lambda: WALL))
    node = {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS", "metadata": {"name": "n0"}}
    async with made.client() as api:
        await api.post(f"{BASE}/nodeqoses", json=node)
        answer = await api.put(f"{BASE}/nodeqoses/n0/status", json={**node, "status": {"node": told}})
        assert answer.status_code == 422, answer.text
        assert where in answer.json()["message"]
        patch = {"content-type": "application/merge-patch+json"}
        answer = await api.patch(f"{BASE}/nodeqoses/n0/status", json={"status": {"node": told}}, headers=patch)
        assert answer.status_code == 422
        assert await _spec_can_be_edited(api)
    await made.store.close()


async def _spec_can_be_edited(api: httpx.AsyncClient) -> bool:
    patch = {"content-type": "application/merge-patch+json"}
    cordon = {"spec": {"unschedulable": True}}
    return (await api.patch(f"{BASE}/nodeqoses/n0", json=cordon, headers=patch)).status_code == 200


@pytest.mark.parametrize(("told", "where"), NONSENSE)
async def test_a_node_that_talks_nonsense_is_left_out_and_everything_else_goes_on(
    manager: Manager, store: MemoryStore, told: dict[str, Any], where: str
) -> None:
    good, bad = Agent("n0"), Agent("n1")
    used, more = ({"memory": {"usage": Quantity(n << 30)}} for n in (1, 4))
    await store.put(reservation("db", cpu="1", units=2))
    await store.put(reservation("refused", cpu="100", units=9))
    for agent in (good, bad):
        await agent.report(manager, demand=used)
    await manager.round()
    before = manager.node("n0").status.overcommit["batch-memory"]
    await say(manager, "n1", told)
    await store.put(reservation("late", cpu="1", units=1))
    for _ in range(2):
        await good.report(manager, demand=more)
        await manager.round()
    assert condition(manager.policy("late"), "Admitted").status == "True"
    assert {*placed(manager.policy("late")), *placed(manager.policy("db"))} == {"n0"}
    ready = condition(manager.node("n1"), "Ready")
    assert (ready.status, ready.reason) == ("False", "BadReport")
    assert where in ready.message
    assert await manager.what_if(workload(cpu="1")) == "n0"
    assert before.amount - manager.node("n0").status.overcommit["batch-memory"].amount == 3 << 30
    assert not manager.node("n1").status.overcommit["batch-memory"].amount
    assert counted(manager) == {"ready": 1, "silent": 0, "badreport": 1}
    await bad.report(manager)
    await manager.round()
    assert condition(manager.node("n1"), "Ready").status == "True"
    assert counted(manager)["ready"] == 2


def counted(manager: Manager) -> dict[str, int]:
    (family,) = [f for f in fleet_metrics.families(manager.view) if f.name == "j10ce_nodes"]
    assert isinstance(family, GaugeMetricFamily)
    return {sample.labels["state"]: int(sample.value) for sample in family.samples}


async def test_claims_that_exceed_the_node_cost_nobody_else(manager: Manager, store: MemoryStore) -> None:
    """All of it within bounds: it is a lie, and the liar's own units are what it costs."""
    good, liar = Agent("n0"), Agent("n1")
    await store.put(reservation("db", cpu="1", memory="1Gi", units=2))
    for agent in (good, liar):
        await agent.report(manager)
    await manager.round()
    lie = {
        "claimed": {"x": {"cpu": "900"}},
        "reservations": [{"source": DB, "charged": 1_000_000, "units": 1_000_000, "amount": {"memory": str(1 << 50)}}],
    }
    await say(manager, "n1", lie)
    await store.put(reservation("web", cpu="1", units=1))
    for _ in range(2):
        await good.report(manager)
        await manager.round()
    assert placed(manager.policy("web")) == {"n0": 1}


async def test_one_node_cannot_use_up_what_a_namespace_may_have_of_the_fleet(
    manager: Manager, store: MemoryStore
) -> None:
    manager.namespace_limit = 25
    good, liar = [Agent(f"n{n}") for n in range(7)], Agent("n7")
    await store.put(reservation("db", cpu="1", units=1))
    for agent in (*good, liar):
        await agent.report(manager)
    await manager.round()
    await say(manager, "n7", {"claimed": {"default": {"cpu": "900"}, "other": {"cpu": "900"}}})
    await store.put(reservation("web", cpu="1", units=1))
    for _ in range(2):
        for agent in good:
            await agent.report(manager)
        manager.clock.wait(10)
        await manager.round()
    for name in ("db", "web"):
        assert condition(manager.policy(name), "Admitted").status == "True"
        assert not [c for c in manager.policy(name).status.conditions if c.type == "Limited"]


async def test_a_stored_report_is_checked_by_whoever_starts(store: MemoryStore, manager: Manager) -> None:
    status = NodeQoSStatus(conditions=(Condition(type="Ready", status="True"),))
    await store.put(NodeQoS(metadata=(await Agent("n0").report(manager)).metadata, status=status), part="status")
    await say(manager, "n0", {"demand": {"gpu": {}}})
    assert "demand.gpu" in manager.view.nonsense["n0"]
    assert manager.view.nodes()[0].status.node.capacity == {}


def test_what_an_agent_reports_of_its_ring_makes_sense(tmp_path: Path) -> None:
    """With floors that hold, units, workloads beyond them, and a policy that asks for what nobody measures."""
    ring = Ring(tmp_path)
    name = ring.agent.observer.facts.name
    policies = [reservation("db", cpu="1", memory="1Gi", network="1Gbit", labels={"app": "db"}, units=2)]
    ring.agent.document = document = render(NodeQoS(metadata=Meta(name=name)), policies=policies, profiles=builtin())
    ring.arrive(*(make.workload(f"db-{n}", labels={"app": "db"}, profile="ls", since=WALL) for n in range(3)))
    said = node_report(ring.tick(), document)
    assert said.reservations
    assert said.claimed
    assert said.effective
    assert report_findings(NodeQoS(metadata=Meta(name=name), status=NodeQoSStatus(node=said))) == []
