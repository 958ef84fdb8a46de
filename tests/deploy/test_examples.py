"""The examples for Kubernetes say what they claim: every object is right, every pod gets its profile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from j10ce.manager.policies.reservations import Reservations
from j10ce.model.kinds import MinimalReservationPolicy, QoSProfile
from j10ce.model.schema import decode
from j10ce.model.workload import Workload
from j10ce.policy.choose import Chooser
from j10ce.policy.document.document import reference
from j10ce.policy.profiles import builtin
from j10ce.policy.validation.validate import validate
from j10ce.scheduler.ledger.pledge import NAMESPACE_LIMIT
from j10ce.testing.build import WALL
from tests.deploy.dockerfiles import CLONE
from tests.hearing import Roster
from tests.reservations.objects import node

HOME = CLONE / "examples/kubernetes"
POLICY = "MinimalReservationPolicy"
FILES = sorted(HOME.rglob("*.yaml"))
CHOSEN = {
    "db": "database",
    "web": "ls",
    "crunch": "be",
    **{f"{name}-pod-example": f"koordinator-{name}" for name in ("system", "lse", "lsr", "ls", "be")},
}


def everything() -> list[Any]:
    return [obj for file in FILES for obj in yaml.safe_load_all(file.read_text())]


def test_every_object_of_ours_is_right() -> None:
    ours = [obj for obj in everything() if obj["apiVersion"].startswith("j10ce.io/")]
    assert len(ours) >= 8
    for obj in ours:
        assert validate(decode(obj)) == [], obj["metadata"]


def pods() -> Iterator[tuple[str, Any]]:
    for obj in everything():
        if obj["kind"] in ("Pod", "Deployment", "StatefulSet", "Job"):
            yield obj["metadata"]["name"], obj if obj["kind"] == "Pod" else obj["spec"]["template"]


@pytest.mark.parametrize("name", CHOSEN)
def test_a_pod_gets_the_profile_that_it_claims(name: str) -> None:
    written = [decode(obj) for obj in everything() if obj["kind"] == "QoSProfile"]
    chooser = Chooser([*builtin(), *(profile for profile in written if isinstance(profile, QoSProfile))])
    labels = dict(pods())[name]["metadata"]["labels"]
    choice = chooser.choose(Workload("payments", name, labels, {"j10ce.io/trusted": "true"}))
    assert choice.profile is not None
    assert choice.profile.metadata.name == CHOSEN[name]


def test_every_pod_is_looked_at() -> None:
    assert {name for name, _ in pods()} == set(CHOSEN)


def test_what_only_administrators_give_is_not_given_elsewhere() -> None:
    profiles = [decode(obj) for obj in everything() if obj["kind"] == "QoSProfile"]
    chooser = Chooser([*builtin(), *(profile for profile in profiles if isinstance(profile, QoSProfile))])
    for name in ("system", "lse", "lsr"):
        labels = dict(pods())[f"{name}-pod-example"]["metadata"]["labels"]
        assert chooser.choose(Workload("elsewhere", name, labels, {})).profile is None


@pytest.mark.parametrize(
    ("cpus", "gib", "percent", "admitted"),
    [
        pytest.param(4, 8, NAMESPACE_LIMIT, "False", id="less than 5 CPUs"),
        pytest.param(8, 4, NAMESPACE_LIMIT, "False", id="less than 5 GiB"),
        pytest.param(5, 5, NAMESPACE_LIMIT, "True", id="enough"),
        pytest.param(2, 4, 100, "True", id="small"),
    ],
)
def test_the_databases_fit_where_the_page_says(cpus: int, gib: int, percent: int, admitted: str) -> None:
    (db,) = (decode(obj) for obj in everything() if obj["kind"] == POLICY and obj["metadata"]["name"] == "db")
    assert isinstance(db, MinimalReservationPolicy)
    machine = node("n1", cpu=str(cpus), memory=f"{gib}Gi")
    decision = Reservations(Roster(), limit_percent=percent).decide([db], [machine], WALL)[reference(db)]
    assert decision.admitted.status == admitted, decision.admitted.message
