"""Three managers on three etcd members and three agents: what users are promised while parts of it die."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from j10ce.errors import Conflict
from tests.agent.process import cgroup
from tests.fleet.fleet import Agent, Fleet
from tests.fleet.managers import BASE, eventually, policies, reservation

pytestmark = pytest.mark.host


def put(fleet: Fleet, name: str, cpu: str, **spec: Any) -> None:
    """Create, or replace, through whichever manager answers."""
    fleet.managers.leader().client.post(policies(), reservation(name, cpu=cpu, **spec))


def change(fleet: Fleet, name: str, cpu: str) -> None:
    """Read and replace, again where the leader wrote its status in between."""
    client = fleet.managers.leader().client

    def replaced() -> bool:
        stored = client.get(f"{policies()}/{name}")
        stored["spec"]["minimum"]["cpu"] = cpu
        try:
            client.put(f"{policies()}/{name}", stored)
        except Conflict:
            return False
        return True

    assert eventually(replaced)


@pytest.fixture
def web(fleet: Fleet) -> Fleet:
    """Every host runs `web`, and a policy promises it something."""
    for agent in fleet.agents:
        if "web" not in {w["metadata"]["name"] for w in agent.client.get("/v1/workloads")["items"]}:
            agent.place("web", profile="ls", labels={"app": "web"})
    if "web" not in {p["metadata"]["name"] for p in fleet.managers.leader().client.get(policies())["items"]}:
        put(fleet, "web", "100m")
    for agent in fleet.agents:
        assert eventually(lambda agent=agent: agent.floor("web") != "")
    return fleet


def shares(agent: Agent, workload: str) -> int:
    """As the kernel has it."""
    (path,) = (
        w["status"]["cgroup"] for w in agent.client.get("/v1/workloads")["items"] if w["metadata"]["name"] == workload
    )
    return int((cgroup("cpu", path) / "cpu.shares").read_text())


def test_a_policy_takes_effect_on_every_host_and_comes_back_as_status(fleet: Fleet) -> None:
    for agent in fleet.agents:
        agent.place("web", profile="ls", labels={"app": "web"})
    before = [shares(agent, "web") for agent in fleet.agents]
    put(fleet, "web", "100m")
    for agent in fleet.agents:
        assert eventually(lambda agent=agent: agent.floor("web") == "100m")
    change(fleet, "web", "300m")
    for agent, old in zip(fleet.agents, before, strict=True):
        assert eventually(lambda agent=agent, old=old: shares(agent, "web") > old)

    def status() -> Any:
        return fleet.managers.leader().client.get(f"{policies()}/web")["status"]

    assert eventually(lambda: status().get("observedGeneration") == 2 and len(status().get("effective", ())) == 3), (
        status()
    )
    assert {floor["node"] for floor in status()["effective"]} == {agent.name for agent in fleet.agents}


def test_followers_serve_reads_writes_and_watches(fleet: Fleet) -> None:
    leader, (one, other) = fleet.managers.leader(), fleet.managers.followers()
    seen, heard = [], threading.Event()

    def watch() -> None:
        for event in other.client.stream(policies(), watch="1", timeoutSeconds="30"):
            seen.append((event["type"], event["object"]["metadata"]["name"]))
            if seen[-1] == ("ADDED", "through-a-follower"):
                heard.set()
                return

    watching = threading.Thread(target=watch)
    watching.start()
    made = one.client.post(policies(), reservation("through-a-follower", cpu="10m"))
    assert heard.wait(30)
    watching.join()
    for member in (leader, one, other):
        stored = member.client.get(f"{policies()}/through-a-follower")
        assert stored["metadata"]["uid"] == made["metadata"]["uid"]


def test_a_killed_leader_is_followed_by_another_and_nothing_acknowledged_is_lost(fleet: Fleet) -> None:
    leader = fleet.managers.leader()
    names = [f"kept-{n}" for n in range(20)]
    for name in names:
        leader.client.post(policies(), reservation(name, cpu="1m"))
    leader.kill()
    heir = fleet.managers.leader()
    listed = {p["metadata"]["name"] for p in heir.client.get(policies())["items"]}
    assert set(names) <= listed
    change(fleet, "web", "400m")
    for agent in fleet.agents:
        assert eventually(lambda agent=agent: agent.floor("web") == "400m")
    leader.launch()
    leader.wait()
    assert fleet.managers.leader() is heir


def test_a_leader_that_hangs_is_deposed_and_accepts_it(fleet: Fleet) -> None:
    hung = fleet.managers.leader()
    hung.signal(signal.SIGSTOP)
    try:
        assert fleet.managers.leader(but=hung) is not hung
    finally:
        hung.signal(signal.SIGCONT)
    assert eventually(lambda: not hung.leads)
    assert len([m for m in fleet.managers.members if m.leads]) == 1


def test_a_leader_that_is_asked_to_stop_hands_over_at_once(fleet: Fleet) -> None:
    leader = fleet.managers.leader()
    assert leader.stop() == 0
    assert fleet.managers.leader() is not leader
    leader.launch()
    leader.wait()


@pytest.mark.parametrize("fault", ["kill", "pause", "cut off"])
def test_the_fleet_goes_on_without_one_etcd_member(fleet: Fleet, fault: str) -> None:
    n = fleet.etcd.leader()
    {"kill": fleet.etcd.kill, "pause": fleet.etcd.pause, "cut off": fleet.network.isolate}[fault](n)
    try:
        others = [m for number, m in enumerate(fleet.managers.members) if fault != "cut off" or number != n]
        name = f"without-{fault}".replace(" ", "-")
        assert eventually(lambda: others[0].client.post(policies(), reservation(name, cpu="1m")))
        assert eventually(lambda: any(m.leads for m in others))
        for member in others:
            assert eventually(lambda member=member: member.client.get(f"{policies()}/{name}"))
    finally:
        {"kill": fleet.etcd.start, "pause": fleet.etcd.resume, "cut off": lambda _: fleet.network.heal()}[fault](n)
    for member in fleet.managers.members:
        assert eventually(lambda member=member: member.client.get(f"{policies()}/{name}"))


def test_agents_protect_without_any_manager_and_come_back_by_themselves(web: Fleet) -> None:
    fleet = web
    for manager in fleet.managers.members:
        manager.kill()
    for agent in fleet.agents:
        floor = agent.floor("web")
        agent.place("late", profile="ls", labels={"app": "web"})
        assert agent.floor("late") == floor != ""
    first = fleet.agents[0]
    floor = first.floor("web")
    first.stop(signal.SIGKILL)
    fleet.start_agent(first)
    assert first.floor("web") == floor
    fleet.managers.start()
    change(fleet, "web", "150m")
    for agent in fleet.agents:
        assert eventually(lambda agent=agent: agent.floor("web") == agent.floor("late") == "150m")


def test_a_host_that_is_cut_off_protects_and_catches_up(web: Fleet) -> None:
    fleet = web
    lone, *others = fleet.agents
    before = lone.floor("web")
    fleet.cut_off(lone)
    try:
        change(fleet, "web", "250m")
        for agent in others:
            assert eventually(lambda agent=agent: agent.floor("web") == "250m")
        assert lone.floor("web") == before
    finally:
        fleet.network.heal()
    assert eventually(lambda: lone.floor("web") == "250m", 150)


def test_a_node_may_speak_for_itself_alone(fleet: Fleet) -> None:
    one, other = fleet.agents[:2]
    token = (one.state_dir / "token").read_text().strip()
    manager = fleet.managers.leader()
    manager.client.token, admin = token, manager.client.token
    try:
        assert manager.client.get(f"{BASE}/nodedocuments/{one.name}")["node"] == one.name
        with pytest.raises(Exception, match="another node"):
            manager.client.get(f"{BASE}/nodedocuments/{other.name}")
    finally:
        manager.client.token = admin
