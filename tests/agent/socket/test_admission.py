"""Adopting a process: into a place of its own with its minimum, or not moved at all."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from j10ce.agent.socket.admission import AdmitRequest, AdoptRequest, check_free
from j10ce.agent.socket.left_limits import Limit
from j10ce.errors import Conflict, Denied, Invalid
from j10ce.model import schema
from j10ce.model.knob import workload
from j10ce.model.workload import Ceiling, Handle, Workload
from j10ce.testing import build
from tests.agent.ring.test_runner import ROOT_USER, Empty, Scene, running


@pytest.fixture
def sleeper() -> Iterator[int]:
    with subprocess.Popen(["sleep", "1000"]) as child:
        yield child.pid
        child.kill()


async def adopt(scene: Scene, pid: int, cpu: str, **more: Any) -> dict[str, Any]:
    fields = {"pid": pid, "name": "db", "profile": "ls", "minimum": {"cpu": cpu}, **more}
    return await scene.operations.adopt(schema.convert(fields, AdoptRequest), ROOT_USER)


def moved(scene: Scene) -> dict[str, set[int]]:
    return {path: set(c.pids) for path, c in scene.ring.fake.cgroups.by_path.items() if c.pids}


async def test_a_process_whose_minimum_is_denied_is_not_moved(tmp_path: Path, sleeper: int) -> None:
    async with running(tmp_path) as scene:
        moves, join = [], scene.ring.fake.join
        scene.ring.fake.join = lambda target, pid: moves.append(pid) or join(target, pid)  # type: ignore[method-assign, func-returns-value]
        with pytest.raises(Denied, match=r"default/db is not adopted: .*cpu 64 wanted.*--best-effort-minimum goes on"):
            await adopt(scene, sleeper, "64", insist=True)
        assert moves == []
        assert workload("default", "db") not in scene.ring.agent.workloads
        assert not [path for path in scene.ring.fake.cgroups.by_path if path.endswith("default_db")]


@pytest.mark.parametrize("insist", [True, False])
async def test_a_process_whose_minimum_is_kept_is_moved(tmp_path: Path, sleeper: int, insist: bool) -> None:
    async with running(tmp_path) as scene:
        adopted = await adopt(scene, sleeper, "100m", insist=insist)
        assert (adopted["unmet"], moved(scene)) == ([], {adopted["cgroup"]: {sleeper}})
        scene.local.look(workload("default", "db"))
        assert workload("default", "db") not in scene.local, "nobody is left in it: it has ended"


async def test_a_minimum_that_need_not_be_upheld_moves_the_process_and_says_why_not(
    tmp_path: Path, sleeper: int
) -> None:
    async with running(tmp_path) as scene:
        adopted = await adopt(scene, sleeper, "64")
        assert "cpu 64 wanted" in adopted["unmet"][0]
        (why,) = (note for note in adopted["notes"] if note not in adopted["otherNotes"])
        assert why == f"Unprotected: Workload/default/db {adopted['unmet'][0]}"
        assert moved(scene) == {adopted["cgroup"]: {sleeper}}


@pytest.mark.parametrize(
    ("minimum", "says"),
    [
        ({"network": "200Mbit"}, "network cannot be promised here: no managed link has a known capacity"),
        ({"diskRead": "50M"}, "diskRead cannot be promised here: no managed disk is calibrated; `j10ce-qos calibrate"),
        ({"diskWrite": "20M"}, "diskWrite cannot be promised here: no managed disk is calibrated"),
    ],
    ids=lambda value: next(iter(value), "") if isinstance(value, dict) else "",
)
async def test_a_minimum_that_this_machine_has_no_measure_of_is_denied_and_says_what_measures_it(
    tmp_path: Path, sleeper: int, minimum: dict[str, str], says: str
) -> None:
    async with running(tmp_path) as scene:
        with pytest.raises(Denied) as denied:
            await adopt(scene, sleeper, "100m", minimum=minimum, insist=True)
        assert says in str(denied.value)
        assert not moved(scene)


async def test_every_percentage_of_what_nobody_measured_is_refused_at_once(tmp_path: Path, sleeper: int) -> None:
    async with running(tmp_path) as scene:
        with pytest.raises(Invalid) as refused:
            await adopt(scene, sleeper, "100m", minimum={"network": "20%", "diskRead": "5%", "memory": "10%"})
        assert [(f.path, f.value) for f in refused.value.findings] == [
            ("minimum.network", "20%"),
            ("minimum.diskRead", "5%"),
        ]


async def test_amounts_against_each_other_are_all_named_at_once(tmp_path: Path, sleeper: int) -> None:
    async with running(tmp_path) as scene:
        amounts = {"cpu": "500kbit", "network": "2Gbit", "diskRead": "1Mbit"}
        with pytest.raises(Invalid) as refused:
            await adopt(scene, sleeper, "", minimum=amounts, limits={"network": "1Gbit", "diskWrite": "0"})
        assert {f.path for f in refused.value.findings} == {
            "minimum.cpu",
            "minimum.network",
            "minimum.diskRead",
            "limits.diskWrite",
        }


async def test_limits_of_every_resource_are_as_they_were_given(tmp_path: Path, sleeper: int) -> None:
    async with running(tmp_path) as scene:
        given = {"cpu": "1", "memory": "1Gi", "network": "50Mbit", "diskRead": "10M", "diskWrite": "5M"}
        await adopt(scene, sleeper, "100m", limits=given)
        limits = scene.ring.agent.workloads[workload("default", "db")].limits
        assert limits == Ceiling(1000.0, float(1 << 30), 5e7, 1e7, 5e6)


async def test_a_limit_that_no_link_can_be_given_is_a_note_for_each_direction(tmp_path: Path, sleeper: int) -> None:
    async with running(tmp_path) as scene:
        notes = (await adopt(scene, sleeper, "100m", limits={"network": "50Mbit"}))["notes"]
        assert [note.partition(":")[0] for note in notes if "50Mbit" in note] == [
            "egress is not limited to 50Mbit",
            "ingress is not limited to 50Mbit",
        ]


class Left(Empty):
    """A process lives where an earlier workload of that name was."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def pids(self, there: Workload) -> list[int] | None:
        return [self.pid] if there.handle.path.endswith("standard/default_db") else None


async def test_a_name_whose_cgroup_still_has_processes_of_an_earlier_one_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.operations.whereabouts = Left(4711)  # type: ignore[assignment]
        with pytest.raises(Conflict, match=r"standard/default_db still holds process 4711 .* choose another name"):
            await scene.place("db")
        assert workload("default", "db") not in scene.local
        assert (await scene.place("web"))["name"] == "web"


async def test_a_forgotten_process_may_be_adopted_again_under_its_name(tmp_path: Path, sleeper: int) -> None:
    async with running(tmp_path) as scene:
        scene.operations.whereabouts = Left(sleeper)  # type: ignore[assignment]
        assert (await adopt(scene, sleeper, "100m"))["name"] == "db"


class Limited(Empty):
    def limits(self, _: object) -> list[Limit]:
        return [Limit("jail", "64Mi of memory")]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        pytest.param("svc/db", "svc/db is managed already, as default/db", id="the same"),
        pytest.param("svc", "svc is above svc/db, which is managed already, as default/db", id="above"),
        pytest.param("svc/db/worker", "svc/db/worker is inside svc/db, which is managed already", id="inside"),
        pytest.param("svc/db2", "", id="beside"),
    ],
)
def test_what_is_managed_is_not_adopted_again_nor_what_is_inside_or_above_it(path: str, says: str) -> None:
    """The memory of the one would be promised again as memory of the other."""
    db = build.workload("db", handle=build.handle("svc/db"))
    with pytest.raises(Denied, match=says) if says else nullcontext():
        check_free(Handle(path=path, made=False), [db])


async def test_a_command_that_leaves_a_limit_is_reported(tmp_path: Path, sleeper: int) -> None:
    async with running(tmp_path) as scene:
        scene.operations.whereabouts = Limited()  # type: ignore[assignment]
        placed = await scene.operations.admit(AdmitRequest(name="web", pid=sleeper), ROOT_USER)
        assert placed["notes"][-1] == "it does not count under the limit of 64Mi of memory of cgroup jail"
