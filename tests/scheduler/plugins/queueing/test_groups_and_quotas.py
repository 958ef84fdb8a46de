"""Groups start together or not at all; what a namespace is sure of comes back to it."""

from __future__ import annotations

from collections import Counter

import pytest

from j10ce.scheduler.book.around import GroupFacts, QuotaFacts
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.cycle.decisions import Bind, Decision, Defer, Evict
from j10ce.scheduler.cycle.profile import profile
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.queueing.groups import LABELS, Coscheduling
from j10ce.scheduler.plugins.queueing.priority import PrioritySort
from j10ce.scheduler.plugins.queueing.quota import MOST_NODES, ElasticQuota
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit

OURS = "ours"


def pod(uid: str, cpu: int = 500, namespace: str = "shop", **more: object) -> PodFacts:
    return PodFacts(uid, namespace, uid, Shape((("cpu", cpu),)), scheduler=OURS)._replace(**more)


def member(uid: str, **more: object) -> PodFacts:
    return pod(uid, labels={LABELS[0]: "g"}, **more)


def scheduler(plugin: object, cpu: int = 2000) -> Scheduler:
    made = Scheduler([profile(OURS, [PrioritySort(), NodeResourcesFit(), plugin])])
    made.put_node(NodeFacts("n", {}, {"cpu": cpu, "pods": 110}), 0.0)
    return made


def bound(out: list[Decision]) -> set[str]:
    return {d.pod.uid for d in out if isinstance(d, Bind)}


def why(out: list[Decision], uid: str) -> str:
    return next(d.why for d in out if isinstance(d, Defer) and d.pod.uid == uid)


def test_a_group_is_not_tried_before_it_is_complete() -> None:
    made = scheduler(Coscheduling())
    made.put_fact(GroupFacts("shop", "g", 2), 0.0)
    made.put_pod(member("a"), 0.0)
    assert "group shop/g has 1 of the 2 pods that have to start together" in why(made.step(1.0), "a")
    made.put_pod(member("b"), 2.0)
    assert bound([*made.step(3.0), *made.step(20.0)]) == {"a", "b"}


def test_those_with_a_node_wait_for_the_others_and_give_it_back() -> None:
    made = scheduler(Coscheduling(wait_s=30.0), cpu=1000)
    made.put_fact(GroupFacts("shop", "g", 3), 0.0)
    for uid in "abc":
        made.put_pod(member(uid), 0.0)
    out = made.step(1.0)
    assert not bound(out)
    assert "of the 3 pods of group shop/g have a node" in why(out, "a")
    assert made.book.used[0, 0] == 1000
    late = made.step(32.0)
    assert not bound(late)
    assert "waited for too long" in why(late, "a")
    made.put_node(NodeFacts("m", {}, {"cpu": 1000, "pods": 110}), 33.0)
    assert bound([d for at in (34.0, 50.0, 60.0) for d in made.step(at)]) == {"a", "b", "c"}


@pytest.mark.parametrize(("groups", "size", "slots"), [(2, 4, 4), (2, 4, 6), (3, 4, 8), (2, 3, 4), (5, 4, 12)])
def test_groups_whose_pods_came_in_turns_start_one_after_the_other(groups: int, size: int, slots: int) -> None:
    made = scheduler(Coscheduling(), cpu=slots * 500)
    for n in range(groups):
        made.put_fact(GroupFacts("shop", f"g{n}", size), 0.0)
    for i in range(size):
        for n in range(groups):
            made.put_pod(pod(f"{i}-{n}", labels={LABELS[0]: f"g{n}"}, created=float(i)), 10.0)
    started = [uid.partition("-")[2] for at in (10.0, 11.0, 80.0, 160.0) for uid in bound(made.step(at))]
    assert sorted(Counter(started).values()) == [size] * (slots // size)


def test_a_pod_that_is_labelled_otherwise_is_of_its_group_no_longer() -> None:
    made = scheduler(Coscheduling())
    made.put_fact(GroupFacts("shop", "g", 3), 0.0)
    for uid in "ab":
        made.put_pod(member(uid, node="n"), 0.0)
        made.put_pod(pod(uid, node="n"), 1.0)
        made.remove_pod(uid, 2.0)
    made.put_pod(member("c"), 3.0)
    assert "group shop/g has 1 of the 3 pods" in why(made.step(4.0), "c")


def test_a_group_without_an_object_is_as_large_as_its_pods_say() -> None:
    made = scheduler(Coscheduling())
    note = {"scheduling.x-k8s.io/min-member": "2"}
    made.put_pod(member("a", annotations=note), 0.0)
    assert not bound(made.step(1.0))
    made.put_pod(member("b", annotations=note), 2.0)
    assert bound([*made.step(3.0), *made.step(20.0)]) == {"a", "b"}


def test_one_that_comes_later_joins_a_group_that_runs() -> None:
    made = scheduler(Coscheduling())
    made.put_fact(GroupFacts("shop", "g", 2), 0.0)
    for uid in "ab":
        made.put_pod(member(uid, node="n"), 0.0)
    made.put_pod(member("c"), 0.0)
    assert bound(made.step(1.0)) == {"c"}
    made.remove_pod("a", 2.0)
    made.remove_pod("b", 2.0)
    made.put_pod(member("d"), 3.0)
    made.remove_pod("c", 3.0)
    assert "has 1 of the 2" in why(made.step(4.0), "d")


def quotas(made: Scheduler) -> None:
    made.put_fact(QuotaFacts("shop", "q", {"cpu": 1000}, {"cpu": 1500}), 0.0)
    made.put_fact(QuotaFacts("bank", "q", {"cpu": 1000}, {"cpu": 2000}), 0.0)


def test_a_namespace_borrows_up_to_its_most() -> None:
    made = scheduler(ElasticQuota(), cpu=9000)
    quotas(made)
    for n in range(4):
        made.put_pod(pod(f"p{n}"), 0.0)
    out = made.step(1.0)
    assert len(bound(out)) == 3
    waiting = next(f"p{n}" for n in range(4) if f"p{n}" not in bound(out))
    assert "quota shop/q allows 1500m of cpu at most: 1500m in use, 500m asked for" in why(out, waiting)


def test_nobody_takes_more_than_all_are_sure_of() -> None:
    made = scheduler(ElasticQuota(), cpu=9000)
    quotas(made)
    made.put_pod(pod("s", 1500, node="n"), 0.0)
    made.put_pod(pod("b", 500, "bank", node="n"), 0.0)
    made.put_pod(pod("new", 600, "bank"), 0.0)
    assert "all quotas together are sure of 2 of cpu: 2 in use, 600m asked for" in why(made.step(1.0), "new")


def test_what_was_lent_comes_back_and_no_more_than_that() -> None:
    made = scheduler(ElasticQuota(), cpu=9000)
    quotas(made)
    for n in range(3):
        made.put_pod(pod(f"s{n}", 500, node="n"), 0.0)
    made.put_pod(pod("b", 500, "bank", node="n"), 0.0)
    made.put_pod(pod("mine", 500, "bank"), 0.0)
    victims = [d for d in made.step(1.0) if isinstance(d, Evict)]
    assert len(victims) == 1
    assert victims[0].victim.namespace == "shop"
    assert "borrows" in victims[0].why
    made.remove_pod(victims[0].victim.uid, 2.0)
    assert bound([*made.step(13.0), *made.step(30.0)]) == {"mine"}


def test_what_was_lent_comes_back_from_the_last_of_many_nodes() -> None:
    made = scheduler(ElasticQuota(), cpu=1000)
    for n in range(MOST_NODES):
        made.put_node(NodeFacts(f"n{n}", {}, {"cpu": 1000, "pods": 110}), 0.0)
    quotas(made)
    for n in (1, 2):
        made.put_pod(pod(f"s{n}", 1000, node=f"n{MOST_NODES - n}"), 0.0)
    made.put_pod(pod("mine", 500, "bank"), 0.0)
    assert [d.victim.namespace for d in made.step(1.0) if isinstance(d, Evict)] == ["shop"]


def test_a_namespace_without_a_quota_is_not_held_back() -> None:
    made = scheduler(ElasticQuota())
    quotas(made)
    made.put_pod(pod("free", 2000, "elsewhere"), 0.0)
    assert bound(made.step(1.0)) == {"free"}
