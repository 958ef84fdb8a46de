"""The fleet's ledger and the agents' own, together: what the witness says is what the nodes hold."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.agent.report.reservations import claimed, reservations
from j10ce.agent.ring.objects import quantities
from j10ce.manager.policies.reservations import RETRY_S, Reservations
from j10ce.model.kinds import Meta, MinimalReservationPolicy, NodeQoS, NodeQoSStatus, NodeReport
from j10ce.model.workload import Workload
from j10ce.policy.document.document import reference, render
from j10ce.policy.entitlement.ledger import Ledger
from j10ce.policy.entitlement.resolve import Resolution, resolve
from j10ce.testing.build import WALL, node, workload
from tests.hearing import Roster
from tests.reservations.objects import after, policy

SETTLED = 6  # rounds of reports and documents without an event


class Agent:
    """One node: its workloads, and the ledger that its document and they make."""

    def __init__(self, name: str, cpus: int) -> None:
        self.facts = node(cpus, f"{cpus * 3}Gi", name=name)
        self.workloads: dict[str, Workload] = {}
        self.resolution = Resolution({}, Ledger(self.facts.capacity))
        self.report: NodeReport = NodeReport()

    def obey(self, obj: NodeQoS, policies: list[MinimalReservationPolicy], wall: float) -> None:
        document = render(obj, policies=policies)
        before = self.resolution.ledger
        self.resolution = resolve(list(self.workloads.values()), document, self.facts, wall=wall, before=before)
        there = {w.target: w for w in self.workloads.values()}
        report: Any = SimpleNamespace(resolution=self.resolution, snap=SimpleNamespace(workloads=there))
        self.report = NodeReport(
            heartbeat=datetime.fromtimestamp(wall, UTC),
            armed=True,
            capacity=quantities(self.facts.capacity),
            claimed=claimed(report),
            reservations=reservations(report, document),
        )

    def held(self) -> dict[str, int]:
        return {r.source: r.units for r in self.report.reservations if r.units}


class Fleet:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.reservations = Reservations(Roster(), limit_percent=100)
        self.agents = {f"n{n}": Agent(f"n{n}", self.random.choice((2, 4))) for n in range(3)}
        self.policies: dict[str, MinimalReservationPolicy] = {}
        self.wall, self.names = WALL, 0

    def settle(self) -> None:
        for _ in range(SETTLED):
            self.wall += RETRY_S
            nodes = {name: self.object(name) for name in self.agents}
            decided = self.reservations.decide(list(self.policies.values()), list(nodes.values()), self.wall)
            self.policies = {key: after(p, decided[reference(p)]) for key, p in self.policies.items()}
            for name, agent in self.agents.items():
                agent.obey(nodes[name], list(self.policies.values()), self.wall)

    def object(self, name: str) -> NodeQoS:
        report = self.agents[name].report
        if not report.capacity:
            self.agents[name].obey(NodeQoS(metadata=Meta(name=name)), [], self.wall)
            report = self.agents[name].report
        beat = datetime.fromtimestamp(self.wall, UTC)
        return NodeQoS(metadata=Meta(name=name), status=NodeQoSStatus(node=replace(report, heartbeat=beat)))

    def happen(self) -> None:
        self.names += 1
        name = f"{self.names}"
        event = self.random.choice(("policy", "policy", "start", "start", "start", "floor", "stop", "stop", "drop"))
        agent = self.random.choice(list(self.agents.values()))
        if event == "policy" and len(self.policies) < 6:
            cpu, units = self.random.choice(("1", "1500m", "2", "3")), self.random.randint(1, 4)
            labels = {"app": f"p{name}"}
            made = policy(f"p{name}", units=units, cpu=cpu, memory="1Gi", age_s=-self.names, labels=labels)
            self.policies[f"p{name}"] = made
        elif event == "start" and self.policies:
            labels = {"app": self.random.choice(sorted(self.policies))}
            agent.workloads[name] = workload(f"w{name}", labels=labels, since=self.wall)
        elif event == "floor":
            agent.workloads[name] = workload(f"w{name}", min_cpu="1", since=self.wall)
        elif event == "stop" and agent.workloads:
            agent.workloads.pop(self.random.choice(sorted(agent.workloads)))
        elif event == "drop" and self.policies:
            self.policies.pop(self.random.choice(sorted(self.policies)))

    def check(self) -> None:
        for name, agent in self.agents.items():
            placed = {reference(p): w.units for p in self.policies.values() for w in p.status.witness if w.node == name}
            assert agent.held() == placed, f"{name}: {agent.resolution.notes}"
            assert agent.resolution.ledger.promised.fits(agent.resolution.ledger.capacity)
            assert not [note for note in agent.resolution.notes if "not all of its" in note.text]
        for p in self.policies.values():
            units = p.status.units
            running = sum(r.charged for a in self.agents.values() for r in a.report.reservations if _of(r, p))
            assert units.used == min(running, units.placed) if p.status.admitted_generation else units.placed == 0


def _of(report: Any, p: MinimalReservationPolicy) -> bool:
    return bool(report.source == reference(p))


@pytest.mark.parametrize("seed", range(3))
def test_what_the_witness_says_is_what_the_nodes_hold(seed: int) -> None:
    fleet = Fleet(seed)
    refused = 0
    for _ in range(40):
        fleet.happen()
        fleet.settle()
        fleet.check()
        refused += sum(not p.status.admitted_generation for p in fleet.policies.values())
    assert refused, "a fleet that is never full proves nothing"


def test_a_node_names_the_workloads_that_it_could_not_protect() -> None:
    agent, web = Agent("n1", 4), policy("web", units=0, cpu="3", labels={"app": "web"})
    for n in range(2):
        agent.workloads[f"web-{n}"] = workload(f"web-{n}", labels={"app": "web"}, since=WALL + n)
    agent.obey(NodeQoS(metadata=Meta(name="n1")), [web], WALL + 9)
    (reservation,) = agent.report.reservations
    assert (reservation.workloads, reservation.unprotected, reservation.unprotected_workloads) == (2, 1, ("web-1",))
