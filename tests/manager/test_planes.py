"""A manager of hosts and one of a cluster are made of the same parts: what both do is wired once, and alike."""

from __future__ import annotations

import ast
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2 as httpx
import pytest

from j10ce.kube.access import read_access
from j10ce.manager import config as settings
from j10ce.manager import plane
from j10ce.manager.fleet_plane import ControlPlane
from j10ce.manager.keepers import run
from j10ce.manager.keepers.run import Keep
from j10ce.manager.kube_plane import KubePlane
from j10ce.manager.plane import Foundation, Plane
from j10ce.manager.telemetry.trace import open_tracer
from j10ce.store.kube.store import KubeStore
from j10ce.store.memory import MemoryStore
from j10ce.store.schemes import elector_for
from j10ce.store.store import Store
from tests.manager.test_kube_plane import KUBECONFIG, WALL
from tests.style.sources import product

ANYONE = ("/healthz", "/readyz", "/version")
LIMIT = 17


def wall() -> float:
    return WALL


@asynccontextmanager
async def made(folder: Path, kind: str) -> AsyncIterator[Any]:
    """One that nobody has started; its API server, or what its store holds, has not been read."""
    (folder / "kubeconfig").write_text(KUBECONFIG)
    where = f"kube://{folder}/kubeconfig" if kind == "cluster" else "memory:"
    config = settings.read([f"--store={where}", "--listen=127.0.0.1:0", f"--namespace-limit={LIMIT}"])
    store: Store = KubeStore(read_access(where, {}), wall, patience_s=0.0) if kind == "cluster" else MemoryStore(wall)
    parts = (config, store, elector_for(store, "m"))
    tracer = open_tracer("", "m")
    yield KubePlane(*parts, wall, tracer) if kind == "cluster" else ControlPlane(*parts, "token", wall, tracer)
    await store.close()


class Wired(NamedTuple):
    """What a plane does while it leads."""

    base: Foundation
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    keepers: set[str]


async def wired(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> Wired:
    """As far as its leadership goes, which begins and ends at once."""
    keeps: list[Keep] = []
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    names: set[str] = set()
    keep_all = run.keep_all

    async def recorded(self: Plane, *_: object, keep: Keep, **__: object) -> None:
        keeps.append(keep)

    async def begun(*args: Any, **options: Any) -> None:
        calls.append((args, options))
        await keep_all(*args, **options)

    async def named(name: str, keep: Keep) -> None:
        names.add(name)

    monkeypatch.setattr(Plane, "run", recorded)
    monkeypatch.setattr(plane, "keep_all", begun)
    monkeypatch.setattr(run, "contain", named)
    async with made(folder, kind) as manager:
        with socket.socket() as listener:
            await manager.run(listener)
        for event in manager._occupants.synced if kind == "cluster" else ():
            event.set()
        await keeps[0]()
        ((arguments, options),) = calls
        return Wired(manager._base, arguments, options, names)


async def test_their_leaders_keep_the_same_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts, cluster = [await wired(tmp_path, kind, monkeypatch) for kind in ("hosts", "cluster")]
    assert hosts.keepers - {"orphans"} == cluster.keepers - set(cluster.options["around"].also)
    assert "orphans" not in cluster.keepers, "Kubernetes collects them by itself"
    for one in (hosts, cluster):
        _, view, wall_of, tracer = one.arguments
        assert (view, wall_of, tracer) == (one.base.view, wall, one.base.tracer)
        assert one.options["namespace_limit"] == LIMIT
        assert one.options["strategies"] is one.base.strategies


async def test_anyone_is_answered_alike(tmp_path: Path) -> None:
    answers = []
    for kind in ("hosts", "cluster"):
        async with made(tmp_path, kind) as manager:
            app = httpx.ASGITransport(app=manager._server.config.app)
            async with httpx.AsyncClient(transport=app, base_url="http://127.0.0.1") as client:
                got = [await client.get(path) for path in ANYONE]
            answers.append([(one.status_code, one.headers["content-type"]) for one in got])
            assert [one.status_code for one in got] == [200, 503, 200]
    assert answers[0] == answers[1]


async def test_both_measure_what_their_foundation_measures(tmp_path: Path) -> None:
    async with made(tmp_path, "hosts") as hosts, made(tmp_path, "cluster") as cluster:
        families = [{f.name for f in one._base.metrics.registry.collect()} for one in (hosts, cluster)]
    assert families[0]
    assert families[0] <= families[1], "a cluster's own beside those of every manager"


@pytest.mark.parametrize("part", ["View", "ObservedStore", "Health", "StrategyFile", "keep_all"])
def test_what_both_need_is_made_in_one_place(part: str) -> None:
    planes = [s for s in product() if s.module.startswith("manager/") and s.module.endswith("plane.py")]
    assert len(planes) == 3
    names = {s.module for s in planes for node in ast.walk(s.tree) if isinstance(node, ast.Name) and node.id == part}
    assert names == {"manager/plane.py"}
