"""What is read of an API server: facts of every kind that it serves, and nothing of what it does not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from j10ce.errors import NotFound
from j10ce.model.stored import Unreadable
from j10ce.scheduler.book.around import BudgetFacts, GroupFacts
from j10ce.scheduler.book.facts import NodeFacts, OwnerFacts, PodFacts
from j10ce.scheduler.process.cluster.kinds import Held, kinds, missing, served
from j10ce.scheduler.reading.owners import Owners
from j10ce.scheduler.reading.pods import PodReader

NEW = ("apps/v1", "batch/v1", "policy/v1", "policy/v1beta1", "j10ce.io/v1alpha1", "scheduling.x-k8s.io/v1alpha1")
OLD = ("apps/v1", "batch/v1", "policy/v1beta1")
META = {"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7"}


def resources(*versions: str) -> dict[str, Any]:
    owners = Owners()
    return kinds(versions, owners, PodReader(owners.top))


def test_pods_are_read_last_as_their_owners_say_what_they_are() -> None:
    assert list(resources(*NEW))[-1] == "Pod"


@pytest.mark.parametrize(
    ("versions", "path"),
    [(NEW, "/apis/policy/v1/poddisruptionbudgets"), (OLD, "/apis/policy/v1beta1/poddisruptionbudgets")],
    ids=["current", "1.20"],
)
def test_budgets_are_read_in_the_newest_version_that_is_served(versions: tuple[str, ...], path: str) -> None:
    assert resources(*versions)["PodDisruptionBudget"].collection() == path


def test_what_is_not_served_is_not_asked_for_and_named() -> None:
    assert not {"PodGroup", "ElasticQuota", "MinimalReservationPolicy"} & resources(*OLD).keys()
    assert set(missing(OLD)) == {
        "PodGroup, ElasticQuota",
        "QoSProfile, PolicyRevision, MinimalReservationPolicy, NodeQoS",
    }
    assert missing(NEW) == {}


@pytest.mark.parametrize(
    ("kind", "body", "fact"),
    [
        ("Pod", {"spec": {"containers": []}}, PodFacts),
        ("Node", {"status": {"allocatable": {"cpu": "4"}}}, NodeFacts),
        ("Deployment", {"spec": {"replicas": 3}}, OwnerFacts),
        ("Job", {"spec": {"parallelism": 2}}, OwnerFacts),
        ("PodDisruptionBudget", {"status": {"disruptionsAllowed": 1}}, BudgetFacts),
        ("PodGroup", {"spec": {"minMember": 2}}, GroupFacts),
    ],
)
def test_of_an_object_its_name_revision_and_facts_are_kept(kind: str, body: dict[str, Any], fact: type) -> None:
    held = resources(*NEW)[kind].read(msgspec.json.encode({"metadata": META, **body}))
    assert isinstance(held, Held)
    assert (held.kind, *held.metadata) == (kind, "shop", "web", "7")
    assert isinstance(held.fact, fact)


@pytest.mark.parametrize("text", [b"{}", b'{"metadata":{"name":"x"}}', b"[]", b'{"metadata":7}'])
def test_what_is_no_pod_is_left_out_of_a_listing(text: bytes) -> None:
    with pytest.raises(Unreadable):
        resources(*NEW)["Pod"].read(text)


async def test_a_server_says_what_it_serves() -> None:
    class Api:
        async def get(self, path: str) -> bytes:
            if path != "/apis":
                raise NotFound(path)
            groups = [{"name": "policy", "versions": [{"groupVersion": "policy/v1", "version": "v1"}]}]
            return msgspec.json.encode({"kind": "APIGroupList", "groups": groups})

    assert await served(Api()) == {"policy/v1"}  # type: ignore[arg-type]
