"""What a strategy says runs beside all workloads is adopted where it is, and given back."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.agent.cache import Cache
from j10ce.agent.host_applications import HostApplications
from j10ce.agent.socket.whereabouts import Whereabouts
from j10ce.errors import Denied, NotFound
from j10ce.host.mounts import Hierarchies
from j10ce.model.parts.strategy import HostApplication, Strategy
from j10ce.model.workload import Handle, Workload
from j10ce.policy.document.document import FORMAT, NodeDocument, digest
from j10ce.policy.profiles import builtin
from j10ce.testing import build
from tests.agent.process import AgentProcess, cgroup, eventually

NGINX = HostApplication(name="nginx", cgroup="system.slice/nginx.service", profile="LS", priority="prod")


class Machine(Whereabouts):
    """Cgroups by name."""

    def __init__(self, *paths: str) -> None:
        self.paths = set(paths)

    def cgroup(self, path: str) -> Handle:
        if path not in self.paths:
            raise NotFound(path)
        return Handle(path=path, made=False)

    def pids(self, workload: Workload, /) -> list[int] | None:
        return [] if workload.handle.path in self.paths else None


def applications(machine: Machine) -> HostApplications:
    return HostApplications("j10ce", machine, Strategy(), ())


def follow(of: HostApplications, *said: HostApplication, known: tuple[Workload, ...] = ()) -> list[tuple[str, str]]:
    return [(e.type, e.workload.name) for e in of.follow(said, known) if e.workload]


def test_it_comes_with_its_cgroup_and_goes_with_it() -> None:
    machine = Machine()
    of = applications(machine)
    assert follow(of, NGINX) == []
    machine.paths.add(NGINX.cgroup)
    assert follow(of, NGINX) == [("ADDED", "nginx")]
    assert follow(of, NGINX) == []
    machine.paths.clear()
    assert follow(of, NGINX) == [("DELETED", "nginx")]


def test_it_goes_when_nobody_names_it_and_comes_again_when_it_is_named_otherwise() -> None:
    of = applications(Machine(NGINX.cgroup))
    follow(of, NGINX)
    lighter = replace(NGINX, profile="be")
    assert follow(of, lighter) == [("DELETED", "nginx"), ("ADDED", "nginx")]
    assert follow(of) == [("DELETED", "nginx")]


def test_it_may_have_any_profile_and_has_the_priority_of_its_band() -> None:
    (event,) = applications(Machine(NGINX.cgroup)).follow((NGINX,), ())
    assert event.workload is not None
    assert event.workload.labels == {"j10ce.io/qos-profile": "ls"}
    assert event.workload.namespace_labels["j10ce.io/trusted"] == "true"
    assert event.workload.priority == 9500
    assert not event.workload.handle.made


@pytest.mark.parametrize(
    "path", ["system.slice", "system.slice/nginx.service/inner", "system.slice/nginx.service", "init.scope", "j10ce/x"]
)
def test_nothing_is_managed_twice_and_nothing_forbidden_at_all(path: str) -> None:
    of = applications(Machine(path))
    known = build.workload("web", handle=build.handle("system.slice/nginx.service"))
    assert follow(of, replace(NGINX, cgroup=path), known=(known,)) == []


async def test_it_is_there_before_the_first_run_and_never_evicted() -> None:
    of = HostApplications("j10ce", Machine(NGINX.cgroup), Strategy(host_applications=(NGINX,)), ())
    listed = [event async for event in of.workloads()]
    assert [e.type for e in listed] == ["ADDED", "SYNCED"]
    assert listed[0].workload is not None
    with pytest.raises(Denied, match="never evicted"):
        await of.evict(listed[0].workload.target, "memory is short")
    with pytest.raises(NotFound):
        await of.evict(build.workload("other").target, "memory is short")


@contextmanager
def own_cgroup(name: str) -> Iterator[Path]:
    """In every hierarchy, with nobody inside."""
    folders = [Path(h.path) / name for h in Hierarchies.discover().in_use().values()]
    for folder in folders:
        folder.mkdir()
    try:
        yield cgroup("cpu", name)
    finally:
        for folder in folders:
            folder.rmdir()


def idle(folder: Path) -> bool:
    return (folder / "cpu.idle").read_text().strip() == "1"


@pytest.mark.host
def test_an_agent_adopts_it_keeps_it_over_a_restart_and_gives_it_back(agent: AgentProcess) -> None:
    name = f"j10cetest-app-{os.getpid()}"
    said = build.strategy("apps", {"hostApplications": [{"name": "app", "cgroup": name, "profile": "be"}]})
    document = NodeDocument(node=socket.gethostname().lower(), format=FORMAT, profiles=builtin(), strategies=(said,))
    Cache(agent.run_dir, agent.state_dir).keep_document(replace(document, hash=digest(document)))
    with own_cgroup(name) as folder:
        agent.start()
        assert idle(folder)
        agent.stop(signal.SIGKILL)
        agent.start()
        assert idle(folder)
        (listed,) = agent.client.get("/v1/workloads")["items"]
        assert (listed["metadata"]["namespace"], listed["status"]["tier"]) == ("j10ce-host", "besteffort")
        agent.client.post("/v1/revert", {})
        assert eventually(lambda: not idle(folder))
