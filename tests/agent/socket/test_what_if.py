"""What-if: objects on paper become a plan with reasons, and nothing else happens."""

from __future__ import annotations

import json
import os
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.agent.dialects import as_it_is
from j10ce.agent.ring.what_if import EVERY_KNOB, Present, Unmeasured, as_plain, as_text, whatif
from j10ce.agent.socket.admission import Caller
from j10ce.agent.socket.operations import Operations
from j10ce.agent.socket.routes import plan
from j10ce.agent.socket.turns import Turns
from j10ce.daemon.clock import Instant
from j10ce.errors import Invalid
from j10ce.http.server import Request
from j10ce.model.knob import Setting, workload
from j10ce.model.plan import ValueChange
from j10ce.model.resource import NOTHING
from j10ce.model.snapshot import Groups, NodeFacts, Snapshot
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.entitlement.ledger import Ledger
from j10ce.policy.profiles import builtin
from j10ce.testing import build

SOMEONE = os.geteuid() + 4711
HERE = NodeFacts("here", cpus=frozenset(range(4)), memory=8 << 30)


def ask(*objects: Any, uid: int = 0) -> Any:
    return whatif(objects, HERE, wall=build.WALL, uid=uid)


def paper(name: str = "web", profile: str = "ls", **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "labels": {"j10ce.io/qos-profile": profile}}
    return {"apiVersion": "j10ce.io/v1alpha1", "kind": "Workload", "metadata": meta, "spec": spec}


def test_a_workload_on_paper_gets_its_floors_and_their_reasons() -> None:
    answer = ask(paper(minimum={"cpu": "1", "memory": "1Gi"}))
    changed = {c.setting: c for c in answer.plan.changes if isinstance(c, ValueChange)}
    floor = changed[Setting(workload("default", "web"), "memory.min")]
    assert floor.new == 1 << 30
    assert "floors" in as_text(answer)


POLICY = {
    "apiVersion": "j10ce.io/v1alpha1",
    "kind": "MinimalReservationPolicy",
    "metadata": {"name": "db"},
    "spec": {"selector": {"matchLabels": {"app": "db"}}, "minimum": {"cpu": "1"}},
}


def reserved() -> dict[str, Any]:
    named = paper("db")
    named["metadata"]["labels"]["app"] = "db"
    return named


@pytest.mark.parametrize(
    ("uid", "floor"),
    [
        pytest.param(0, 1000, id="root"),
        pytest.param(os.geteuid(), 1000, id="the user whose agent it is"),
        pytest.param(SOMEONE, 0, id="a member of the group"),
    ],
)
async def test_whoever_asks_over_the_socket_is_foretold_what_a_policy_gives_to_what_it_places(
    uid: int, floor: int
) -> None:
    snap = Snapshot(0.0, build.WALL, HERE, Groups(), Unmeasured(), support=EVERY_KNOB)

    async def in_force(*_: object) -> Present:
        return Present(NodeDocument(node="here", profiles=builtin()), snap, Ledger(NOTHING))

    operations = Operations.__new__(Operations)
    operations._planning = Turns()
    clock = SimpleNamespace(read=lambda: Instant(0.0, build.WALL))
    operations.shell = SimpleNamespace(
        report=object(), agent=object(), on_ring=in_force, clock=clock, translate=as_it_is
    )  # type: ignore[assignment]
    with socket.socket() as peer:
        request = Request("POST", "/v1/plan", {}, {}, json.dumps({"objects": [POLICY, reserved()]}).encode(), peer)
        answer: Any = await plan(SimpleNamespace(operations=operations), request, Caller(1, uid, uid))  # type: ignore[arg-type]
    (entitled,) = answer["entitlements"]
    assert entitled["floor"][0] == floor
    assert ("is for what root places here" in answer["text"]) == (not floor)


def test_on_another_machine_a_workload_is_roots_whoever_asks() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "k"}, "status": {"capacity": {"cpu": "8"}}}
    entitled = ask(node, POLICY, reserved(), uid=SOMEONE).resolution.entitlements
    assert entitled[workload("default", "db")].floor.cpu == 1000


def test_a_reservation_without_a_namespace_counts_in_default_as_apply_puts_it_there() -> None:
    policy, named = POLICY, reserved()
    elsewhere = {**named, "metadata": {**named["metadata"], "namespace": "shop"}}
    entitled = ask(policy, named, elsewhere).resolution.entitlements
    assert entitled[workload("default", "db")].floor.cpu == 1000
    assert entitled[workload("shop", "db")].floor.cpu == 0


def test_a_node_among_the_objects_is_planned_for() -> None:
    node = {
        "apiVersion": "j10ce.io/v1alpha1",
        "kind": "NodeQoS",
        "metadata": {"name": "big"},
        "status": {"node": {"capacity": {"cpu": "64", "memory": "256Gi"}}},
    }
    answer = whatif([node, paper(minimum={"cpu": "50%"})], replace(HERE, cpu_quota=1500), wall=build.WALL)
    assert (answer.node.name, len(answer.node.cpus)) == ("big", 64)
    assert answer.resolution.entitlements[workload("default", "web")].floor.cpu == 32000


def test_kubernetes_pods_and_nodes_are_understood() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "k"}, "status": {"capacity": {"cpu": "8"}}}
    requests = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "shop", "labels": {"j10ce.io/qos-profile": "ls"}},
        "spec": {
            "containers": [
                {"name": "a", "resources": requests},
                {"name": "b", "resources": {**requests, "limits": {"cpu": "1"}}},
            ]
        },
    }
    answer = ask(node, pod)
    entitled = answer.resolution.entitlements[workload("shop", "p")]
    assert (answer.node.name, entitled.requests.cpu, entitled.profile) == ("k", 1000, "ls")
    assert entitled.ceiling.cpu == float("inf")  # one container has no limit


def test_a_workload_without_a_profile_is_planned_as_run_would_place_it() -> None:
    plain = paper()
    del plain["metadata"]["labels"]
    output = as_text(ask(plain))
    assert "workload/default/web: profile burstable, tier standard" in output
    assert "profile )" not in output


def test_a_plan_with_nothing_to_write_says_so() -> None:
    profile = {"apiVersion": "j10ce.io/v1alpha1", "kind": "QoSProfile", "metadata": {"name": "x"}}
    output = as_text(ask({**profile, "spec": {"tier": "standard"}}))
    assert output.splitlines()[1:] == ["nothing to write: no workload is here or among these objects"]
    assert "nothing to write" not in as_text(ask(paper()))


def test_a_promise_beyond_the_machine_is_reported_with_numbers() -> None:
    assert "Unprotected" in as_text(ask(paper(minimum={"cpu": "5"})))


def test_all_findings_of_all_objects_are_reported() -> None:
    with pytest.raises(Invalid) as caught:
        ask({"kind": "Nope"}, paper(minimum={"cpu": "x"}), 7)
    paths = [finding.path for finding in caught.value.findings]
    assert any(p.startswith("[0]") for p in paths)
    assert any(p.startswith("[1].spec.minimum.cpu") for p in paths)
    assert any(p.startswith("[2]") for p in paths)


def test_the_answer_is_plain_data() -> None:
    plain = as_plain(ask(paper()))
    assert plain["changes"]
    assert plain["node"]["name"] == "here"
