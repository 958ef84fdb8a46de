"""Whom classic mode lets go: looking at all nodes together says what looking at one after the other says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.book.around import BudgetFacts
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import NodeFacts, OwnerFacts, PodFacts
from j10ce.scheduler.book.shape import LabelTest, Shape
from j10ce.scheduler.cluster import Rows
from j10ce.scheduler.cycle.engine import Engine
from j10ce.scheduler.cycle.framework import Candidate, Preemptor
from j10ce.scheduler.cycle.nominated import Nominated
from j10ce.scheduler.cycle.profile import profile
from j10ce.scheduler.plugins.classic.measures import measures
from j10ce.scheduler.plugins.classic.sheet import Sheet
from j10ce.scheduler.plugins.classic.standing import rivals
from j10ce.scheduler.plugins.classic.victims import Victims
from j10ce.scheduler.plugins.qos.aware import QosAware
from j10ce.scheduler.plugins.qos.settings import QosSettings
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit
from tests.scheduler.plugins.qos.cluster import Units

START: Final = 1_790_000_000.0
NODES: Final = 4
APPROACHES: Final = ("independent", "average", "aggregate", "concurrent")
shares = st.sampled_from((0.0, 0.25, 0.5, 0.5, 0.9, 1.0))


class OneByOne:
    """A cycle that knows nothing of nodes that are alike."""

    def __init__(self, engine: Engine) -> None:
        self.book = engine.book
        self._engine = engine

    def fits(self, pod: PodFacts, row: int, /) -> bool:
        return self._engine.fits(pod, row)

    def budgets(self, victims: Sequence[PodFacts], /) -> int:
        return self._engine.budgets(victims)

    def spared(self, pod: PodFacts, /) -> bool:
        return self._engine.spared(pod)


class World:
    """A few nodes, and pods that come, are bound, run and go."""

    def __init__(self, margin: float = 20.0, minimum: float = 30.0) -> None:
        self.accounts = Accounts("classic")
        self.margin, self.minimum = margin, minimum
        self.plugin = QosAware(QosSettings("classic"), self.accounts)
        self.book = Book()
        self.spared: set[str] = set()
        units = Units(lambda pod: pod.uid in self.spared)
        self.engine = Engine(profile("s", [self.plugin, NodeResourcesFit(), units]), self.book, Nominated(self.book))
        self.victims = Victims(self.accounts, margin, minimum)
        self.now = START
        self.uids = count()
        self.pods: dict[str, PodFacts] = {}
        for n in range(NODES):
            self.book.put_node(NodeFacts(f"n{n}", {}, {"cpu": 4_000, "pods": 5}))

    def put(self, pod: PodFacts) -> PodFacts:
        self.pods[pod.uid] = pod
        self.accounts.seen(pod, self.now)
        self.book.put_pod(pod)
        return pod

    def new(self, owner: str, slo: float, approach: str, cpu: int, slots: int = 2, **more: object) -> PodFacts:
        uid = f"u{next(self.uids)}"
        annotations = {"controller": owner, "slo": str(slo), "qosMeasuring": approach}
        of = OwnerFacts("Deployment", "shop", owner, slots=slots)
        shape = Shape((("cpu", cpu),), (cpu, 0))
        pod = PodFacts(uid, "shop", uid, shape, {"app": owner}, annotations, created=self.now, owner=of)
        return self.put(pod._replace(**more))

    def bind(self, pod: PodFacts, node: str) -> PodFacts:
        self.accounts.binding(pod.uid, self.now)
        return self.put(pod._replace(node=node, phase="Running"))

    def gone(self, pod: PodFacts) -> None:
        del self.pods[pod.uid]
        self.accounts.gone(pod.uid, self.now)
        self.book.remove_pod(pod.uid)

    def choose(self, pod: PodFacts, cycle: Preemptor | None = None) -> Candidate | str:
        refused = np.array([row for row in self.rows.tolist() if not self.engine.fits(pod, row)], np.int64)
        return self.victims.choose(pod, refused, self.engine if cycle is None else cycle, self.now)

    @property
    def rows(self) -> Rows:
        return np.arange(len(self.book))


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_all_nodes_together_are_as_one_after_the_other(data: st.DataObject) -> None:
    world = World(margin=data.draw(st.sampled_from((0.0, 20.0))), minimum=data.draw(st.sampled_from((0.0, 30.0))))
    approach = {f"o{n}": data.draw(st.sampled_from(APPROACHES)) for n in range(5)}
    slo = {owner: data.draw(shares) for owner in approach}
    if data.draw(st.booleans(), label="a budget"):
        test = LabelTest((("app", "o1"),))
        world.book.around.put(BudgetFacts("shop", "b", test, data.draw(st.integers(0, 1))))
    for _ in range(data.draw(st.integers(5, 25), label="steps")):
        world.now += data.draw(st.sampled_from((0.0, 1.0, 3.5, 40.0)))
        alive = list(world.pods.values())
        owner = data.draw(st.sampled_from(sorted(approach)))
        match data.draw(st.sampled_from(("new", "new", "bind", "bind", "bind", "gone", "deleted", "succeeded"))):
            case "new":
                cpu = data.draw(st.sampled_from((500, 1_000, 2_500)))
                world.new(owner, slo[owner], approach[owner], cpu)
            case "bind":
                if waiting := [pod for pod in alive if not pod.node]:
                    world.bind(data.draw(st.sampled_from(waiting)), f"n{data.draw(st.integers(0, NODES - 1))}")
            case "gone" if alive:
                world.gone(data.draw(st.sampled_from(alive)))
            case "deleted" if alive:
                world.put(data.draw(st.sampled_from(alive))._replace(deleted=world.now))
            case "succeeded" if running := [pod for pod in alive if pod.node]:
                world.put(data.draw(st.sampled_from(running))._replace(phase="Succeeded"))
        for pod in waiting_in(world):
            world.choose(pod)
    world.spared = set(data.draw(st.lists(st.sampled_from(sorted(world.pods)), max_size=3))) if world.pods else set()
    agreed(world)
    cpu = data.draw(st.sampled_from((1_000, 2_500, 4_000)))
    world.new("mine", data.draw(shares), data.draw(st.sampled_from(APPROACHES)), cpu)
    world.now += data.draw(st.sampled_from((0.0, 10.0, 400.0)))
    agreed(world)


def agreed(world: World) -> None:
    for pod in waiting_in(world):
        assert world.choose(pod) == world.choose(pod, OneByOne(world.engine))
    same_measures(world)


def waiting_in(world: World) -> list[PodFacts]:
    return [pod for pod in world.pods.values() if not pod.node and pod.deleted is None]


def same_measures(world: World) -> None:
    """To the last digit."""
    sheet = Sheet(world.accounts)
    sheet.look(world.book)
    lines = sheet.on(world.rows, world.book)
    of = measures(sheet.lines(lines), world.now)
    known = {sheet.pod(line).uid: n for n, line in enumerate(lines.tolist())}
    others = list(rivals(world.accounts, iter(world.book.pods.values()), lambda _: False, world.now))
    assert {each.pod.uid for each in others} == set(known)
    for each in others:
        m, n = each.measure, known[each.pod.uid]
        many = (of.metric[n], of.slo[n], of.preemption_overhead[n], of.acceptable[n], of.ran[n])
        np.testing.assert_array_equal(many, (m.metric, m.slo, m.preemption_overhead, m.acceptable, m.ran))
        assert of.contributing[n] == m.contributing


def ran(world: World, owner: str, slo: float, node: str, seconds: float, cpu: int = 1_000) -> PodFacts:
    """A pod that has run for so long, without ever having waited."""
    now, world.now = world.now, world.now - seconds
    pod = world.bind(world.new(owner, slo, "independent", cpu), node)
    world.now = now
    return pod


def full_of(world: World, slo: float, seconds: float) -> list[PodFacts]:
    """Four on each node."""
    return [ran(world, f"of{n}", slo, f"n{n % NODES}", seconds) for n in range(4 * NODES)]


def wants(world: World, cpu: int = 1_000, slo: float = 0.9, waited: float = 60.0, **more: object) -> PodFacts:
    now, world.now = world.now, world.now - waited
    pod = world.new("wants", slo, "independent", cpu, **more)
    world.now = now
    return pod


def chosen(world: World, pod: PodFacts) -> tuple[str, set[str]]:
    answer = world.choose(pod)
    assert isinstance(answer, Candidate), answer
    assert set(answer.why) == {victim.uid for victim in answer.victims}
    return answer.node, {victim.uid for victim in answer.victims}


def later(world: World) -> None:
    world.now = START + 10_000.0


def test_who_can_bear_it_best_goes_and_no_other() -> None:
    world = World()
    later(world)
    rich = ran(world, "rich", 0.5, "n2", 2_000.0)
    full_of(world, 0.5, 600.0)
    world.gone(next(pod for pod in world.pods.values() if pod.node == "n2" and pod.uid != rich.uid))
    assert chosen(world, wants(world)) == ("n2", {rich.uid})


def test_the_important_ones_in_contention_are_left_alone_before_others() -> None:
    world = World(margin=1_000.0)
    later(world)
    for n in range(NODES):
        for m in range(4):
            ran(world, f"a{n}{m}", 0.7 if n == 1 else 0.8, f"n{n}", 600.0)
    node, _ = chosen(world, wants(world, slo=0.9))
    assert node == "n1"


def test_as_few_go_as_the_pod_needs() -> None:
    world = World()
    later(world)
    full_of(world, 0.5, 600.0)
    assert len(chosen(world, wants(world, cpu=2_500))[1]) == 3


def test_whom_a_budget_protects_comes_back_first_and_a_budget_that_is_used_up_protects_the_next() -> None:
    world = World()
    later(world)
    there = full_of(world, 0.5, 600.0)
    names = sorted(pod.uid for pod in there if pod.node == "n0")
    guarded = [pod._replace(labels={"app": "guarded"}) for pod in there if pod.uid in names[:2] or pod.node != "n0"]
    for pod in guarded:
        world.put(pod)
    world.book.around.put(BudgetFacts("shop", "b", LabelTest((("app", "guarded"),)), 1))
    node = OneByOne(world.engine)
    pod = wants(world, cpu=2_000)
    answer = world.victims.choose(pod, np.array([0]), node, world.now)
    assert isinstance(answer, Candidate)
    assert len({victim.uid for victim in answer.victims} & set(names[:2])) <= 1


@pytest.mark.parametrize(
    ("seconds", "slo", "goes"),
    [
        pytest.param(29.0, 0.9, False, id="too short a run protects from an equal one"),
        pytest.param(31.0, 0.9, True, id="long enough, and nothing lost yet"),
        pytest.param(29.0, 0.5, True, id="but not from a more important one"),
    ],
)
def test_the_minimum_of_running_protects_from_all_but_more_important_ones(
    seconds: float, slo: float, goes: bool
) -> None:
    world = World(margin=20.0, minimum=30.0)
    later(world)
    full_of(world, slo, seconds)
    assert isinstance(world.choose(wants(world, slo=0.9, waited=600.0)), Candidate) == goes


def test_who_stands_on_a_unit_stays_whoever_else_has_to_go() -> None:
    world = World()
    later(world)
    rich = ran(world, "rich", 0.5, "n2", 2_000.0)
    full_of(world, 0.5, 600.0)
    world.gone(next(pod for pod in world.pods.values() if pod.node == "n2" and pod.uid != rich.uid))
    world.spared = {rich.uid}
    assert rich.uid not in chosen(world, wants(world))[1]


def test_pods_of_kube_system_critical_ones_and_those_that_go_already_are_no_victims() -> None:
    world = World()
    later(world)
    for n, pod in enumerate(full_of(world, 0.1, 600.0)):
        world.gone(pod)
        spared = (pod._replace(namespace="kube-system"), pod._replace(critical=True), pod._replace(deleted=world.now))
        world.put(spared[n % 3])
    assert isinstance(world.choose(wants(world)), str)


def test_pods_of_one_owner_go_for_each_other_only_where_each_is_measured_alone() -> None:
    for approach, goes in (("average", False), ("independent", True)):
        world = World()
        world.now = START
        for n in range(4 * NODES):
            world.bind(world.new("same", 0.5, approach, 1_000, slots=20), f"n{n % NODES}")
        world.now = START + 600.0
        pod = world.new("same", 0.5, approach, 1_000, slots=20)
        world.now += 300.0
        assert isinstance(world.choose(pod), Candidate) == goes
