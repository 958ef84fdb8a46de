"""What a scheduler is made of: a file, or the default."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from j10ce.errors import Denied, Invalid
from j10ce.scheduler.process.compose import composed

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
