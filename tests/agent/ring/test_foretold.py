"""What `plan -f` foretells happens: the same entitlements and the same writes as when the objects are applied."""

from __future__ import annotations

import random
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.agent.ring.contained import Contained
from j10ce.agent.ring.in_force import in_force
from j10ce.agent.ring.ring import Report
from j10ce.agent.ring.what_if import WhatIf, whatif
from j10ce.control.builtin import build as controllers
from j10ce.model import schema
from j10ce.model.kinds import MemorySection, MinimalReservationPolicy, QoSProfile
from j10ce.model.knob import ROOT, group
from j10ce.model.plan import Plan, ValueChange
from j10ce.model.workload import Handle, Workload
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.profiles import builtin
from j10ce.testing import build
from tests.agent.whole_ring import Ring

APPS = ("a", "b", "c")
Thing = MinimalReservationPolicy | QoSProfile


def foretell(ring: Ring, *objects: Any) -> WhatIf:
    assert ring.agent._last is not None
    present = in_force(ring.agent, ring.agent._last)
    raws = [o if isinstance(o, dict) else schema.plain(o) for o in objects]
    return whatif(raws, ring.agent.observer.facts, wall=ring.wall, present=present)


def stored(ring: Ring, thing: Thing) -> Thing:
    """As an API server keeps it: created now, unless one of that name is there already."""
    every: list[Thing] = [*ring.agent.document.policies, *ring.agent.document.profiles]
    kept = [o for o in every if same(o, thing)]
    created = kept[0].metadata.creation_timestamp if kept else datetime.fromtimestamp(ring.wall, UTC)
    return replace(thing, metadata=replace(thing.metadata, creation_timestamp=created))


def same(a: Thing, b: Thing) -> bool:
    return type(a) is type(b) and (a.metadata.namespace, a.metadata.name) == (b.metadata.namespace, b.metadata.name)


def apply(ring: Ring, *things: Thing) -> Report:
    """The objects are in the node's document, and the ring has run."""
    document = ring.agent.document
    for thing in things:
        field = "policies" if isinstance(thing, MinimalReservationPolicy) else "profiles"
        others = tuple(o for o in getattr(document, field) if not same(o, thing))
        document = replace(document, **{field: (*others, stored(ring, thing))})
    ring.agent.obey(document)
    return ring.tick(0.0)


def writes(plan: Plan) -> dict[str, object]:
    return {str(c.setting): c.new for c in plan.changes if isinstance(c, ValueChange)}


def assert_foretold(foretelling: WhatIf, done: Report) -> None:
    floors = {t: (e.tier, e.floor, e.chosen, e.notes) for t, e in foretelling.resolution.entitlements.items()}
    assert floors == {t: (e.tier, e.floor, e.chosen, e.notes) for t, e in done.snap.entitlements.items()}
    assert sorted(foretelling.resolution.ledger) == sorted(done.resolution.ledger)
    assert writes(foretelling.plan) == writes(done.plan)


def local(name: str, pid: int, **fields: Any) -> Workload:
    return replace(build.workload(name, **fields), handle=Handle(), pids=(pid,))


def test_a_policy_that_comes_later_takes_nothing_from_one_in_force(tmp_path: Path) -> None:
    """The older workload has no floor yet; of 3.8 CPUs 3 are promised, and 2 are asked for on paper."""
    ring = Ring(tmp_path)
    ring.arrive(local("new", 1, profile="ls", labels={"app": "new"}, since=ring.wall))
    ring.tick()
    ring.arrive(local("old", 2, profile="ls", min_cpu=3, since=ring.wall))
    ring.tick()
    asked = build.reservation("p", labels={"app": "new"}, cpu=2)
    forecast = foretell(ring, asked)
    assert forecast.resolution.entitlements[build.workload("old").target].floor.cpu == 3000
    assert forecast.resolution.entitlements[build.workload("new").target].floor.cpu == 0
    assert_foretold(forecast, apply(ring, asked))


def test_the_agents_own_configuration_is_what_a_plan_is_made_with(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    ring.agent.guards = [Contained(c) for c in controllers({"floors": {"tierWeights": {"sensitive": 9000}}})]
    ring.arrive(local("web", 1, profile="ls", labels={"app": "a"}), local("job", 2, profile="burstable"))
    ring.tick()
    asked = build.reservation("p", labels={"app": "a"}, cpu=1)
    assert_foretold(foretell(ring, asked), apply(ring, asked))


def test_memory_that_strangers_keep_counts_on_paper_too(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    ring.fake.enable(ROOT, frozenset({"cpu", "cpuset", "memory"}))
    ring.fake.adopt(group("machine.slice"), "machine.slice", {"memory.min": 4.0 * 2**30})
    ring.arrive(local("web", 1, profile="ls", labels={"app": "a"}))
    ring.tick()
    asked = build.reservation("p", labels={"app": "a"}, memory="5Gi")
    forecast = foretell(ring, asked)
    assert forecast.resolution.entitlements[build.workload("web").target].floor.memory == 0
    assert_foretold(forecast, apply(ring, asked))


@pytest.mark.parametrize("minimum", [{}, {"cpu": "1"}, {"memory": "1Gi"}, {"cpu": "1", "memory": "9Gi"}])
def test_a_workload_on_paper_gets_what_it_gets_when_it_arrives(tmp_path: Path, minimum: dict[str, str]) -> None:
    ring = Ring(tmp_path)
    ring.arrive(local("old", 1, profile="ls", min_cpu=2, min_memory="3Gi"))
    ring.tick()
    meta = {"name": "web", "labels": {"j10ce.io/qos-profile": "ls"}}
    paper = {"apiVersion": "j10ce.io/v1alpha1", "kind": "Workload", "metadata": meta, "spec": {"minimum": minimum}}
    forecast = foretell(ring, paper)
    amounts = {f"min_{name}": amount for name, amount in minimum.items()}
    done = ring.arrive(local("web", 2, profile="ls", since=ring.wall, **amounts))
    assert forecast.resolution.entitlements[build.workload("web").target].floor == (
        done.snap.entitlements[build.workload("web").target].floor
    )
    assert writes(forecast.plan) == writes(done.plan)


def some_workload(r: random.Random, n: int, wall: float) -> Workload:
    return local(
        f"w{n}",
        100 + n,
        profile=r.choice(["", "ls", "be", "lsr", "burstable"]),
        labels={"app": r.choice(APPS)},
        cpu=r.choice([0, "500m", 1]),
        memory=r.choice([0, "1Gi", "3Gi"]),
        memory_limit=r.choice([None, None, "2Gi"]),
        min_cpu=r.choice([0, 0, "300m", 2]),
        min_memory=r.choice([0, 0, "512Mi", "4Gi"]),
        since=wall,
    )


def some_object(r: random.Random) -> Thing:
    if r.random() < 0.3:
        section = MemorySection(min_percent=r.choice([0, 50]), low_percent=r.choice([50, 100]))
        return build.profile(r.choice(["gold", "iron"]), r.choice(["sensitive", "standard"]), memory=section)
    return build.reservation(
        f"p{r.randrange(3)}",
        labels=r.choice([{}, *({"app": a} for a in APPS)]),
        units=r.choice([0, 0, 1, 2]),
        cpu=r.choice(["100m", "200m", "1", "3"]),
        memory=r.choice(["0", "256Mi", "2Gi", "6Gi"]),
    )


@pytest.mark.parametrize("version", ["v1", "v2"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_whatever_is_applied_does_what_was_foretold(version: str, seed: int) -> None:
    """A host with a history of arrivals, ends and policies; then one object more, on paper and in earnest."""
    r = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        ring = Ring(Path(folder), version)
        ring.agent.obey(NodeDocument(node="node", profiles=builtin()))
        living: dict[int, Workload] = {}
        for n in range(r.randrange(1, 7)):
            living[n] = some_workload(r, n, ring.wall)
            ring.arrive(living[n])
            if r.random() < 0.4:
                apply(ring, some_object(r))
            if r.random() < 0.2:
                gone = living.pop(r.choice(list(living)))
                ring.fake[ring.agent.workloads[gone.target].handle.path].pids.clear()
                ring.leave(gone)
            ring.tick()
        for _ in range(2):
            ring.tick()
        asked = some_object(r)
        assert_foretold(foretell(ring, asked), apply(ring, asked))
