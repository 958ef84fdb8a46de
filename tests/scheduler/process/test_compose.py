"""What a scheduler is made of: a file, or the default."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from j10ce.errors import Denied, Invalid
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.config.sections import API_VERSIONS, KIND
from j10ce.scheduler.cycle.decisions import Bind, Defer
from j10ce.scheduler.process.compose import composed

EMPTY = {"apiVersion": API_VERSIONS[0], "kind": KIND}
CLONE = Path(__file__).resolve().parents[3]
EXAMPLE, SOURCES = CLONE / "examples/scheduler/qosaware.yaml", CLONE / "src"


def test_without_a_file_pods_are_sorted_by_their_slos_and_reservations_heeded() -> None:
    made = composed(None)
    (profile,) = made.settings.profiles
    assert profile.name == "j10ce-qos-scheduler"
    names = {getattr(plugin, "name", "") for plugin in profile.plugins}
    assert {"QosAware", "Reservation", "LoadAware", "NodeResourcesFit", "InterPodAffinity"} <= names
    assert not {"PrioritySort", "DefaultPreemption"} & names


def test_the_accounts_that_are_shown_are_those_that_sort_the_queue() -> None:
    made = composed(EXAMPLE)
    (profile,) = made.settings.profiles
    assert getattr(profile.queue_sort, "accounts", None) is made.accounts


def test_a_pod_that_could_not_be_bound_rests_as_long_as_the_file_says(tmp_path: Path) -> None:
    said = {"podInitialBackoffSeconds": 3, "podMaxBackoffSeconds": 5, "profiles": [{"schedulerName": "ours"}]}
    (tmp_path / "config.yaml").write_text(json.dumps(EMPTY | said))
    scheduler = composed(tmp_path / "config.yaml").scheduler
    scheduler.put_node(NodeFacts("n", {}, {"cpu": 1000, "memory": 1000, "pods": 8}, (), False), 0.0)
    scheduler.put_pod(PodFacts("u", "d", "p", Shape((), (1, 1)), scheduler="ours"), 0.0)
    assert [type(decision) for decision in scheduler.step(0.0)] == [Bind]
    scheduler.bind_failed("u", "conflict", 1.0)
    assert [d.until for d in scheduler.step(1.0) if isinstance(d, Defer)] == [4.0]
    assert scheduler.step(3.9) == []
    assert [type(decision) for decision in scheduler.step(4.0)] == [Bind]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "profiles: 7",
        "apiVersion: v1\nkind: Pod",
        "profiles: [{plugins: {queueSort: {enabled: [{name: Nobody}]}}}]",
    ],
    ids=["empty", "a list", "a number", "a pod", "a plugin that nobody has"],
)
def test_a_file_that_is_none_is_refused_with_all_that_is_wrong(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(Invalid):
        composed(tmp_path / "config.yaml")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Denied, match=r"nothing\.yaml"):
        composed(tmp_path / "nothing.yaml")


def test_a_bad_file_ends_it_with_status_3(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("kind: KubeSchedulerConfiguration\nprofles: []")
    argv = [sys.executable, "-m", "j10ce.scheduler.process.main", "--store", "kube:///nowhere", "--listen"]
    argv += ["127.0.0.1:0", "--config", str(tmp_path / "config.yaml")]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(SOURCES)}
    )
    assert done.returncode == 3
    assert "profles" in done.stderr
