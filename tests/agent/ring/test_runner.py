"""The shell: one event that cannot be handled harms nobody else, and whoever waits is answered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.adapters.static import StaticAdapter
from j10ce.agent.cache import Cache
from j10ce.agent.config import AgentConfig
from j10ce.agent.ring.holds import HoldRequest
from j10ce.agent.ring.ring import Report
from j10ce.agent.ring.runner import Runner, Shell, Stop
from j10ce.agent.socket.admission import AdmitRequest, Caller
from j10ce.agent.socket.left_limits import Limit
from j10ce.agent.socket.operations import Operations
from j10ce.daemon.clock import Instant
from j10ce.errors import Conflict, Finding, Invalid, QosError
from j10ce.model.knob import workload
from j10ce.model.workload import Handle, Workload
from j10ce.testing import build
from tests.agent.whole_ring import Ring

ROOT_USER = Caller(1, 0, 0)


class Empty:
    """Nobody lives anywhere, and every cgroup is there."""

    def pids(self, _: Workload) -> list[int] | None:
        return []

    def returns(self, _: Workload) -> bool:
        return False

    def identity(self, _: Handle) -> int:
        return 7

    def limits(self, _: object) -> list[Limit]:
        return []


class Scene:
    def __init__(self, folder: Path) -> None:
        self.ring = Ring(folder)
        self.local = StaticAdapter((), Empty())
        self.shell = Shell(self.ring.agent, [self.local], self, 0.01)
        self.failures: list[str] = []
        self.ran = asyncio.Event()
        config = AgentConfig(run_dir=str(folder / "run"), state_dir=str(folder / "state"))
        cache = Cache(folder / "run", folder / "state")
        self.operations = Operations(self.shell, self.local, Empty(), cache, config)  # type: ignore[arg-type]
        self.after_run = [lambda report: self.ran.set(), lambda report: self.operations.forget_ended()]
        self.on_failure = [self.failures.append, lambda cause: self.ran.set()]

    def read(self) -> Instant:
        return self.ring.instant(0.01)

    async def until(self, claim: Callable[[], bool]) -> None:
        """Looks after every run of the ring."""
        while not claim():
            self.ran.clear()
            await self.ran.wait()

    async def place(self, name: str, namespace: str = "default") -> dict[str, Any]:
        return await self.operations.admit(AdmitRequest(name=name, namespace=namespace), ROOT_USER)

    async def forget(self, name: str) -> dict[str, Any]:
        return await self.operations.remove("default", name, ROOT_USER, ended=False)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Scene]:
    scene = Scene(folder)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(Runner(scene.shell, scene.after_run, scene.on_failure).run())
        await scene.shell.ready.wait()
        yield scene
        scene.shell.stop(Stop())
    scene.shell.close()


class Picky:
    """A tree that has no place for some names, as systemd has none for a unit name beyond 255 bytes."""

    def __init__(self, path_for: Callable[[str, str, str], Handle]) -> None:
        self.path_for = path_for

    def __call__(self, tier: str, namespace: str, name: str, /) -> Handle:
        if "long" in name:
            raise Invalid([Finding("name", name, "makes a unit name of 260 bytes", "at most 255")], "workload")
        return self.path_for(tier, namespace, name)


async def test_a_name_that_the_tree_has_no_place_for_is_refused_before_the_ring_hears_of_it(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.ring.fake.path_for = Picky(scene.ring.fake.path_for)  # type: ignore[method-assign]
        with pytest.raises(Invalid, match="260 bytes"):
            await scene.place("too-long")
        assert scene.failures == []
        assert (await scene.place("web"))["name"] == "web"


async def test_an_event_that_raises_is_answered_and_the_ring_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.ring.fake.path_for = Picky(scene.ring.fake.path_for)  # type: ignore[method-assign]
        bad, good = build.workload("too-long", profile="ls"), build.workload("web", profile="ls")
        events = [scene.local.add(replace(w, handle=Handle())) for w in (bad, good)]
        problem, report = await asyncio.gather(*map(scene.shell.handle, events), return_exceptions=True)  # one batch
        assert isinstance(problem, QosError)
        assert "260 bytes" in str(problem)
        assert isinstance(report, Report)
        assert good.target in report.snap.workloads
        assert bad.target not in report.snap.workloads
        assert "change" in scene.failures
        before = scene.shell.report
        await scene.until(lambda: scene.shell.report is not before and scene.shell.fault == "")


async def test_a_tick_that_raises_is_counted_and_the_next_one_comes(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        tick, raised = scene.ring.agent.tick, []

        def broken(at: Instant) -> Report:
            if len(raised) < 3:
                raised.append(at)
                raise OSError(5, "Input/output error")
            return tick(at)

        scene.ring.agent.tick = broken  # type: ignore[method-assign]
        await scene.until(lambda: len(raised) == 3)
        before = scene.shell.report
        await scene.until(lambda: scene.shell.report is not before)
        assert scene.failures.count("tick") == 3


async def test_what_failed_and_nobody_waits_for_is_tried_again(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        change, raised = scene.ring.agent.change, []

        def broken(events: list[WorkloadEvent], at: Instant) -> Report:
            if not raised:
                raised.append(at)
                raise OSError(24, "Too many open files")
            return change(events, at)

        scene.ring.agent.change = broken  # type: ignore[method-assign, assignment]
        scene.shell.take(scene.local.add(replace(build.workload("web", profile="ls"), handle=Handle())))
        await scene.until(lambda: workload("default", "web") in scene.ring.agent.workloads)
        assert raised


async def test_a_listener_that_raises_ends_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.after_run.insert(0, lambda report: SimpleNamespace().missing)
        assert (await scene.place("web"))["name"] == "web"
        assert scene.failures


async def test_a_name_that_is_forgotten_while_it_is_being_placed_answers_both(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        event = scene.local.add(replace(build.workload("web", profile="ls"), handle=Handle()))
        placed, forgotten = await asyncio.gather(scene.shell.handle(event), scene.forget("web"))  # one batch, or two
        assert forgotten["removed"]
        assert placed.cause == "change"
        assert workload("default", "web") not in scene.ring.agent.workloads


async def test_whoever_places_a_name_that_is_forgotten_meanwhile_is_reported(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        add = scene.local.add

        def forgotten_at_once(w: Workload) -> WorkloadEvent:
            event = add(w)
            asyncio.get_running_loop().call_soon(scene.shell.take, scene.local.remove(w.target))  # one batch
            return event

        scene.local.add = forgotten_at_once  # type: ignore[method-assign]
        with pytest.raises(Conflict, match="was forgotten while it was being placed"):
            await scene.place("web")


async def test_a_disk_that_hangs_holds_up_whoever_waits_for_it_and_nobody_else(tmp_path: Path) -> None:
    async with running(tmp_path) as scene, asyncio.TaskGroup() as tasks:
        await scene.place("web")
        draft = tmp_path / "state" / "holds.draft"
        draft.parent.mkdir(exist_ok=True)
        os.mkfifo(draft)  # whoever opens it to write waits for a reader
        asked = HoldRequest(target="workload/default/web", knobs=("cpu.weight",), why="x", for_seconds=60)
        holding = tasks.create_task(scene.operations.hold(asked, ROOT_USER))
        await scene.until(lambda: bool(scene.ring.agent.holds))
        before = scene.shell.report
        await scene.until(lambda: scene.shell.report is not before)
        assert not holding.done()
        assert b"cpu.weight" in draft.read_bytes()
        assert (await holding)["name"]
