"""The examples for Kubernetes say what they claim: every object is right, every pod gets its profile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from j10ce.model.kinds import QoSProfile
from j10ce.model.schema import decode
from j10ce.model.workload import Workload
from j10ce.policy.choose import Chooser
from j10ce.policy.profiles import builtin
from j10ce.policy.validate import validate
from tests.deploy.dockerfiles import CLONE

HOME = CLONE / "examples/kubernetes"
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
