"""Anything that may happen to a control plane, in random order, and what has to be true after each of it.

The oracles are written here, from what is stored and what the nodes are: nothing is asked of the code that decided.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from j10ce.errors import Conflict, NotFound
from j10ce.manager.api.place import Placements
from j10ce.manager.api.place_policy import Terms
from j10ce.manager.identity import SYSTEM, Act, acting
from j10ce.model.kinds import (
    Lending,
    MinimalReservationPolicy,
    NodeQoS,
    PolicyRevision,
    ReservationReport,
    Rollout,
)
from j10ce.model.quantity import Duration, Quantity
from j10ce.model.schema import convert
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import minimum, reservation, selector
from tests.manager.keepers.world import Agent, Clock, Manager, condition, placed, running, stored
from tests.scheduler.place.fleet import workload

KIND = "MinimalReservationPolicy"
REPORT_S = 10.0
NOTICED_S = 80.0  # a dead node is withdrawn from by then, if one leader looks all the while
KEPT = 10
NONSENSE: list[dict[str, Any]] = [
    {"demand": {"gpu": {"usage": Quantity(1)}}},
    {"capacity": {"cpu": Quantity(9 * 10**18)}},
    {"reservations": (ReservationReport(source="nonsense", charged=1),)},
]


class Anything:
    def __init__(self, seed: int) -> None:
        self.random, self.clock = random.Random(seed), Clock()
        self.store = MemoryStore(self.clock.wall)
        self.agents: dict[str, Agent] = {}
        self.heard: dict[str, float] = {}  # true time of the last report of each node
        self.dead: set[str] = set()
        self.bad: set[str] = set()
        self.leads_since = 0.0
        self.stirred = 0.0  # true time at which a node last became another one
        self.admitted: dict[str, int] = {}  # by uid: the admitted generation seen last
        self.short: set[str] = set()  # uids of policies that lacked units when they were last looked at
        self.names, self.last = 0, ""
        self.done: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()  # what the run has been through, so that it proves something

    async def __aenter__(self) -> Anything:
        self._stack = AsyncExitStack()
        self.managers = [await self._start(), await self._start()]
        self.leader = self.managers[0]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        await self.store.close()

    async def _start(self) -> Manager:
        skew_s = self.random.choice((0.0, 0.0, 3.0, -3.0))  # what is tolerated of managers
        made = Manager(self.store, self.clock, skew_s)
        await self._stack.enter_async_context(running(made))
        return made

    # -- what happens

    async def step(self) -> None:
        happening = self.random.choices(
            ("create", "edit", "absurd", "delete", "join", "die", "back", "lie", "resize", "cordon", "start", "stop",
             "failover", "restart", "place", "wait", "skew"),
            (8, 6, 5, 3, 3, 3, 2, 2, 2, 2, 5, 4, 2, 2, 6, 2, 1),
        )[0]  # fmt: skip
        self.done[happening] += 1
        self.last = happening
        if happening in ("join", "die", "back", "lie", "resize", "cordon"):
            self.stirred = self.clock.now
        await getattr(self, happening)()
        await self.settle()
        await self.check()

    async def settle(self) -> None:
        """Time passes, nodes obey and report, the leader looks; as often as it takes for a change to arrive."""
        for _ in range(4):
            self.clock.wait(REPORT_S)
            for name, agent in self.agents.items():
                if name not in self.dead:
                    await self.report(name, agent)
            await self.leader.round()

    async def report(self, name: str, agent: Agent) -> None:
        document = self.leader.document(name) if name in self.heard else None
        held = document.units if document else {}
        agent.runs = {p: min(n, held.get(f"{KIND}/default/{p}", 0)) for p, n in agent.runs.items()}
        more: dict[str, Any] = {}
        if name in self.bad:
            more = self.random.choice(NONSENSE)
        await agent.report(self.leader, **more)
        self.heard[name] = self.clock.now

    async def policies(self) -> list[MinimalReservationPolicy]:
        return await stored(self.store, MinimalReservationPolicy)

    async def any_policy(self) -> MinimalReservationPolicy | None:
        there = [p for p in await self.policies() if not p.metadata.name.startswith("placement-")]
        return self.random.choice(there) if there else None

    def any_agent(self) -> Agent | None:
        return self.random.choice(list(self.agents.values())) if self.agents else None

    def wish(self) -> dict[str, Any]:
        pick = self.random.choice
        rollout = pick((UNSET, UNSET, Rollout(), Rollout(canary_percent=pick((0, 10, 50)), paused=pick((True, False)))))
        nodes = pick((UNSET, UNSET, UNSET, selector({"kubernetes.io/hostname": f"n{self.random.randrange(4)}"})))
        return {
            "minimum": minimum(cpu=pick(("500m", "1", "2")), memory=pick(("1Gi", "3Gi"))),
            "units": self.random.randrange(4),
            "rollout": rollout,
            "node_selector": nodes,
            "lending": pick((Lending(), Lending(), Lending(mode="Reclaimable"))),
            "ttl": pick((UNSET, UNSET, UNSET, Duration(600))),
        }

    async def create(self) -> None:
        if len(await self.policies()) < 7:
            self.names += 1
            made = reservation(f"p{self.names}", labels={"app": f"p{self.names}"})
            await self.store.put(replace(made, spec=replace(made.spec, **self.wish())))

    async def edit(self, **more: Any) -> None:
        if (policy := await self.any_policy()) is not None:
            await self.store.put(replace(policy, spec=replace(policy.spec, **(more or self.wish()))))

    async def absurd(self) -> None:
        """More often than the history is long; of a change that was not on all nodes yet, now and then."""
        if self.random.random() < 0.5:
            half = Rollout(canary_percent=50, paused=self.random.random() < 0.5)
            await self.edit(minimum=minimum(cpu="400m"), rollout=half)
            await self.settle()
        policy = await self.any_policy()
        for n in range(self.random.choice((1, 2, KEPT + 2))) if policy else ():
            policy = await self.store.put(replace(policy, spec=replace(policy.spec, units=500 + self.names * 20 + n)))  # type: ignore[arg-type,assignment]
            if self.random.random() < 0.5:
                await self.leader.round()

    async def delete(self) -> None:
        if (policy := await self.any_policy()) is not None:
            await self.store.delete(KIND, "default", policy.metadata.name)

    async def join(self) -> None:
        if len(self.agents) < 5:
            name = f"n{len(self.agents)}"
            skew_s = self.random.choice((0.0, -86400.0, 90.0, 3600.0))
            self.agents[name] = Agent(name, skew_s=skew_s)

    async def die(self) -> None:
        self.dead.update([agent.name] if (agent := self.any_agent()) else ())

    async def back(self) -> None:
        self.dead.clear()

    async def lie(self) -> None:
        if self.bad:
            self.bad.clear()
        elif agent := self.any_agent():
            self.bad.add(agent.name)

    async def resize(self) -> None:
        if (agent := self.any_agent()) and agent.name not in self.dead:
            agent.runs = {}
            agent.capacity = {
                "cpu": Quantity.parse(self.random.choice(("2", "4211m", "8"))),
                "memory": Quantity.parse(self.random.choice(("6Gi", "17Gi"))),
            }

    async def cordon(self) -> None:
        for node in await stored(self.store, NodeQoS):
            if self.random.random() < 0.3:
                spec = replace(node.spec, unschedulable=not node.spec.unschedulable)
                await self.store.put(replace(node, spec=spec))

    async def start(self) -> None:
        agent, policy = self.any_agent(), await self.any_policy()
        if agent and policy:
            agent.runs[policy.metadata.name] = self.random.randrange(1, 3)
        if agent:
            agent.best_effort = self.random.choice(("0", "12Gi"))

    async def stop(self) -> None:
        if agent := self.any_agent():
            agent.runs = {}

    async def failover(self) -> None:
        self.leader.resign()
        self.leader = self.managers[1 - self.managers.index(self.leader)]
        self.leads_since = self.clock.now

    async def restart(self) -> None:
        """The process of the leader ends, and another one starts on the same store; it knows no more than that."""
        at = self.managers.index(self.leader)
        self.leader.resign()
        self.leader = self.managers[at] = await self._start()
        self.leads_since = self.clock.now

    async def place(self) -> None:
        self.names += 1
        wanted = workload(f"w{self.names}", cpu="1", labels={"app": f"p{self.random.randint(1, self.names)}"})
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(self._placed(wanted))
            while not asked.done():
                await self.leader.round()
        self.seen[f"place {'yes' if asked.result() else 'no'}"] += 1

    async def _placed(self, wanted: Any) -> bool:
        other = self.managers[1 - self.managers.index(self.leader)]
        await other.caught_up()
        places = Placements(self.store, other.view, lambda: other.wall)
        try:
            with acting(Act(SYSTEM)):
                places.enter("default", dry=False)
                placement = await places.place(wanted, Terms(ttl=Duration(300)))
        except Conflict:
            return False
        assert placement.node not in self.bad, "a node that talks nonsense was chosen"
        silent_s = self.clock.now - self.heard[placement.node]
        assert silent_s <= NOTICED_S, f"{placement.node} has been dead for {silent_s:g} s, and was chosen"
        return True

    async def wait(self) -> None:
        self.clock.wait(120)

    async def skew(self) -> None:
        if agent := self.any_agent():
            agent.skew_s = self.random.choice((0.0, 7200.0, -7200.0))

    # -- what has to be true

    async def check(self) -> None:
        policies = await self.policies()
        revisions: dict[str, dict[int, PolicyRevision]] = {}
        for revision in await stored(self.store, PolicyRevision):
            revisions.setdefault(revision.metadata.owner_references[0].uid, {})[revision.revision] = revision
        shapes = {p.metadata.uid: self.shape(p, revisions) for p in policies}
        self.check_room(policies, shapes)
        self.check_nodes(policies)
        for policy in policies:
            self.check_policy(policy, revisions.get(policy.metadata.uid, {}))
        self.check_documents(policies)
        await self.check_refusals(policies, shapes)
        assert revisions.keys() <= {p.metadata.uid for p in policies}, "a revision has outlived its policy"
        self.admitted = {p.metadata.uid: p.status.admitted_generation for p in policies}
        conditions = ((p, c) for p in policies for c in p.status.conditions)
        self.short = {p.metadata.uid for p, c in conditions if (c.type, c.status) == ("Degraded", "True")}

    def shape(self, policy: MinimalReservationPolicy, kept: dict[str, dict[int, PolicyRevision]]) -> tuple[int, int]:
        """Millicores and bytes of one unit, of the generation that is admitted."""
        spec, held = policy.spec, policy.status.admitted_generation
        if held and held != policy.metadata.generation and policy.spec.units:
            assert held in kept.get(policy.metadata.uid, {}), f"{policy.metadata.name}: generation {held} is not kept"
            spec = convert(kept[policy.metadata.uid][held].data, type(spec))
        cpu, memory = (q.amount if q is not UNSET else 0 for q in (spec.minimum.cpu, spec.minimum.memory))
        return int(cpu * 1000), int(memory)

    def check_room(self, policies: list[MinimalReservationPolicy], shapes: dict[str, tuple[int, int]]) -> None:
        """Never oversold: a twentieth of a machine is never promised, and 100m and 256Mi at least."""
        for name, agent in self.agents.items():
            if name in self.dead or name in self.bad:
                continue
            cpu, memory = int(agent.capacity["cpu"].amount * 1000), int(agent.capacity["memory"].amount)
            promised = [0, 0]
            for p in policies:
                units = placed(p).get(name, 0)
                promised = [sum_ + units * n for sum_, n in zip(promised, shapes[p.metadata.uid], strict=True)]
            assert promised[0] <= cpu * 19 // 20, f"{name}: {promised[0]}m of {cpu}m are promised"
            assert promised[1] <= memory * 19 // 20, f"{name}: {promised[1]} of {memory} bytes are promised"

    async def check_refusals(
        self, policies: list[MinimalReservationPolicy], shapes: dict[str, tuple[int, int]]
    ) -> None:
        """Nobody is refused who would fit, unit by unit, beside all that is placed."""
        free: dict[str, list[int]] = {}
        for node in await stored(self.store, NodeQoS):
            name = node.metadata.name
            if not (name in self.dead or name in self.bad or node.spec.unschedulable):
                has = self.agents[name].capacity
                cpu, memory = int(has["cpu"].amount * 1000), int(has["memory"].amount)
                taken = [(placed(p).get(name, 0), shapes[p.metadata.uid]) for p in policies]
                free[name] = [w * 19 // 20 - sum(n * s[r] for n, s in taken) for r, w in enumerate((cpu, memory))]
        if any(c.type == "Degraded" and c.status == "True" for p in policies for c in p.status.conditions):
            return  # someone else goes first
        for policy in policies:
            if condition(policy, "Admitted").reason == "NoRoom" and not policy.status.admitted_generation:
                pinned, shape = policy.spec.node_selector, shapes[policy.metadata.uid]
                there = (f for n, f in free.items() if pinned is UNSET or n in pinned.match_labels.values())
                room = sum(max(0, min(f // s for f, s in zip(left, shape, strict=True) if s)) for left in there)
                assert room < policy.spec.units, f"{policy.metadata.name} is refused, and {room} units fit"

    def check_nodes(self, policies: list[MinimalReservationPolicy]) -> None:
        holding = {node for p in policies for node in placed(p)}
        for name in self.agents:
            ready = condition(self.leader.node(name), "Ready").status
            if name in self.bad and name not in self.dead:
                assert ready == "False", f"{name} talks nonsense, and is Ready={ready}"
                assert name not in holding
            elif name not in self.dead:
                assert ready == "True", f"{name} reports, and is Ready={ready}"
            elif self.clock.now - max(self.heard.get(name, 0.0), self.leads_since) > NOTICED_S:
                self.seen["dead"] += 1
                assert ready != "True", f"{name} is dead, and Ready"
                assert name not in holding, f"{name} is dead, and holds units"

    def check_policy(self, policy: MinimalReservationPolicy, kept: dict[int, PolicyRevision]) -> None:
        status, name = policy.status, policy.metadata.name
        verdict = condition(policy, "Admitted")
        self.seen[verdict.reason] += 1
        self.seen[f"rollout {next((c.reason for c in status.conditions if c.type == 'Progressing'), '-')}"] += 1
        assert sum(placed(policy).values()) == status.units.placed, f"{name}: witness and count differ"
        assert status.units.lent <= status.units.placed - status.units.used
        if verdict.reason == "Expired":
            assert not placed(policy), f"{name} is over, and holds units"
            return
        before = self.admitted.get(policy.metadata.uid, 0)
        assert status.admitted_generation >= before, f"{name}: generation {before} was admitted, and is lost"
        wanted = self.units(policy, kept)
        if status.admitted_generation and policy.spec.units and status.units.placed < wanted:
            self.seen["short"] += 1
            assert condition(policy, "Degraded").status == "True", f"{name} lacks units, and does not say so"
        if status.admitted_generation:
            assert status.units.placed <= wanted
        settled = self.clock.now - self.stirred > 3 * NOTICED_S and policy.metadata.uid not in self.short
        if status.admitted_generation > before and settled and wanted:
            self.seen["admitted whole"] += 1
            assert status.units.placed == wanted, f"{name} was admitted with {status.units.placed} of {wanted} units"
        needed = {status.rollout.stable, status.admitted_generation}
        assert len(kept.keys() - needed) <= KEPT, f"{name} keeps {sorted(kept)}"

    def units(self, policy: MinimalReservationPolicy, kept: dict[int, PolicyRevision]) -> int:
        held = policy.status.admitted_generation
        if held in (0, policy.metadata.generation) or not policy.spec.units:
            return policy.spec.units
        return int(kept[held].data.get("units", 0))

    def check_documents(self, policies: list[MinimalReservationPolicy]) -> None:
        """What a node gets is what is admitted, or stable where a rollout has not come; whoever it asks."""
        by_name = {p.metadata.name: p for p in policies}
        for name in self.agents:
            document = self.leader.document(name)
            held = {f"{KIND}/default/{p.metadata.name}": placed(p)[name] for p in policies if name in placed(p)}
            assert document.units == held, f"{name} gets other units than it has"
            for obeyed in document.policies:
                policy = by_name[obeyed.metadata.name]
                admitted = policy.status.admitted_generation
                counts = admitted if admitted and policy.spec.units else policy.metadata.generation
                allowed = {counts} if policy.spec.rollout is UNSET else {counts, policy.status.rollout.stable}
                if admitted and counts != policy.metadata.generation:
                    allowed.add(policy.status.rollout.stable)
                assert obeyed.metadata.generation in allowed, (
                    f"{name}: {obeyed.metadata.name} {obeyed.metadata.generation}"
                )

    async def check_followers(self) -> None:
        for manager in self.managers:
            await manager.caught_up()
        for name in self.agents:
            one, other = (manager.document(name) for manager in self.managers)
            assert one == other, f"{name} gets something else from each manager"


async def live(seed: int, steps: int) -> Anything:
    """One life of a control plane; raises AssertionError with seed and step."""
    async with Anything(seed) as world:
        for step in range(steps):
            try:
                await world.step()
                await world.check_followers()
            except (AssertionError, NotFound) as e:
                e.add_note(f"seed {seed}, step {step}, after {world.last}")
                raise
        return world
