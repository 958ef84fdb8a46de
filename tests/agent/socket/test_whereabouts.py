"""Where workloads are: when one without processes is over, and when it is between two of its lives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.adapters.static import StaticAdapter
from j10ce.agent.socket.whereabouts import Whereabouts
from j10ce.host.mounts import UNIFIED, Hierarchies, Mount
from j10ce.kernel.cgroup.tree import PlainTree
from j10ce.kernel.owner import TreeOwner
from j10ce.kernel.systemd.units import Units
from j10ce.model.workload import Handle, Workload
from j10ce.testing import build
from j10ce.testing.fake_systemd import FakeSystemd


@pytest.fixture
def places(tmp_path: Path) -> Whereabouts:
    hierarchies = Hierarchies({UNIFIED: Mount(str(tmp_path), 2, frozenset({"cpu"}))})
    return Whereabouts(hierarchies, TreeOwner(PlainTree(hierarchies, "j10ce"), ()))


def adopted(unit: str, *, made: bool = False) -> Workload:
    return replace(build.workload("db"), handle=Handle(path=f"system.slice/{unit}", unit=unit, made=made))


def test_an_adopted_service_is_still_known_after_a_restart(places: Whereabouts, tmp_path: Path) -> None:
    folder = tmp_path / "system.slice/redis.service"
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text("7\n")
    redis = adopted("redis.service")
    adapter = StaticAdapter([redis], places)
    adapter.sweep()
    (folder / "cgroup.procs").unlink()
    folder.rmdir()
    adapter.sweep()
    adapter.sweep()
    assert redis.target in adapter


def test_an_adopted_service_of_systemd_run_ends_when_systemd_forgets_it(
    places: Whereabouts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("j10ce.agent.socket.whereabouts.TRANSIENT", (str(tmp_path),))
    file = tmp_path / "run-u7.service"
    file.touch()
    job = adopted("run-u7.service")
    adapter = StaticAdapter([], places)
    adapter.add(job)
    adapter.sweep()
    assert job.target in adapter, "it may start again"
    file.unlink()
    adapter.sweep()
    assert job.target not in adapter


@pytest.mark.parametrize(
    ("unit", "made", "returns"),
    [
        pytest.param("redis.service", False, True, id="a service"),
        pytest.param("batch.slice", False, True, id="a slice"),
        pytest.param("session-3.scope", False, False, id="a scope, which nobody starts again"),
        pytest.param("j10ce-default-web.scope", True, False, id="a scope of ours"),
        pytest.param("", False, False, id="a cgroup"),
    ],
)
def test_who_comes_back(places: Whereabouts, unit: str, made: bool, returns: bool) -> None:
    assert places.returns(adopted(unit, made=made)) is returns


@pytest.mark.parametrize("path", ["system.slice/redis.service", "system.slice", "system.slice/redis.service/worker"])
def test_a_service_that_was_adopted_by_its_cgroup_comes_back_too(tmp_path: Path, path: str) -> None:
    systemd = FakeSystemd(tmp_path)
    systemd.add("system.slice/redis.service")
    (systemd.root / "system.slice/redis.service/worker").mkdir()
    tree = PlainTree(systemd.hierarchies, "j10ce")
    places = Whereabouts(systemd.hierarchies, TreeOwner(tree, (), Units(systemd, str(systemd.run))))
    made = replace(build.workload("db"), handle=places.cgroup(path))
    assert places.returns(made) is path.endswith(".service")


def test_a_process_that_waits_is_over_once_another_has_its_number(places: Whereabouts) -> None:
    here = os.getpid()
    assert places.pids(replace(build.workload("db"), pids=(here,))) == [here]
    assert places.pids(replace(build.workload("db"), pids=(here,), proofs=("1/0",))) is None


def test_one_without_a_process_is_not_over_before_the_ring_has_found_a_place_for_it(places: Whereabouts) -> None:
    adapter = StaticAdapter([], places)
    adapter.add(early := build.workload("early"))
    assert adapter.sweep() == []
    assert early.target in adapter
