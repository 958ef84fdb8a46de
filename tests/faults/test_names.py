"""No name that a request can carry leaves the tree it belongs to, at any entry point; each is refused with a reason."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from j10ce.errors import Denied, Invalid, NotFound, QosError
from tests.agent.process import AgentProcess, cgroup, one_agent

pytestmark = pytest.mark.host

ESCAPES = ["..", "../x", "a/../../b", "/etc", "a/b", ".", "a\0b", "a\nb", "a b", "%2e%2e", "a" * 300, "A", "-a", "a..b"]
Entry = Callable[[AgentProcess, str], Any]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, clone: Path) -> Iterator[AgentProcess]:
    with one_agent(tmp_path_factory.mktemp("names"), clone) as one:
        yield one.start()


def hold(target: str) -> dict[str, object]:
    return {"target": target, "knobs": ["cpu.max"], "forSeconds": 60, "why": "test"}


def place(agent: AgentProcess, **fields: object) -> Any:
    return agent.client.post("/v1/workloads", {"name": "x", "pid": agent.child(), **fields})


ENTRIES: dict[str, Entry] = {
    "place, its name": lambda a, text: place(a, name=text),
    "place, its namespace": lambda a, text: place(a, namespace=text),
    "place, a label": lambda a, text: place(a, labels={f"{text}/": "x"}),
    "adopt, its name": lambda a, text: a.client.post("/v1/adopt", {"pid": a.child(), "name": text}),
    "adopt, its namespace": lambda a, text: a.client.post("/v1/adopt", {"pid": a.child(), "namespace": text}),
    "adopt, a cgroup": lambda a, text: a.client.post("/v1/adopt", {"cgroup": text, "name": "x"}),
    "adopt, a unit": lambda a, text: a.client.post("/v1/adopt", {"unit": text, "name": "x"}),
    "remove, its namespace": lambda a, text: a.client.delete(f"/v1/workloads/{quote(text, safe='')}/x"),
    "remove, its name": lambda a, text: a.client.delete(f"/v1/workloads/default/{quote(text, safe='')}"),
    "hold, a namespace": lambda a, text: a.client.post("/v1/holds", hold(f"workload/{text}/x")),
    "hold, a name": lambda a, text: a.client.post("/v1/holds", hold(f"workload/default/{text}")),
    "hold, a target": lambda a, text: a.client.post("/v1/holds", hold(text)),
    "explain, a target": lambda a, text: a.client.get("/v1/explain", target=f"group/{text}"),
    "a listing, its namespace": lambda a, text: a.client.get(f"/v1/workloads/{quote(text, safe='')}"),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_name_that_escapes_is_refused_everywhere(shared: AgentProcess, entry: str) -> None:
    before = sorted(os.listdir(shared.run_dir))
    for text in ESCAPES:
        with pytest.raises(QosError) as refused:
            ENTRIES[entry](shared, text)
        assert "InternalError" not in str(refused.value), text
        assert "Error:" not in str(refused.value), text  # an exception of ours that nobody foresaw
    assert shared.client.get("/v1/workloads")["items"] == []
    assert shared.client.get("/v1/holds")["items"] == []
    assert sorted(os.listdir(shared.run_dir)) == before


@pytest.mark.parametrize("text", ["group/..", "group/../x", "group//x", "group/./x", "group/a\nb", "part/default/x"])
def test_a_hold_names_a_target_that_can_be(shared: AgentProcess, text: str) -> None:
    with pytest.raises(Invalid, match="not a target"):
        shared.client.post("/v1/holds", hold(text))


@pytest.mark.parametrize(
    ("cgroup", "error"),
    [
        pytest.param("/", Denied, id="the root"),
        pytest.param("//", Denied, id="the root, spelled twice"),
        pytest.param("init.scope", Denied, id="init"),
        pytest.param("init.scope/below", Denied, id="below init"),
        pytest.param("{top}", Denied, id="our top group"),
        pytest.param("{top}/agent", Denied, id="the agent's own"),
        pytest.param("{top}/standard/x", Denied, id="below our top group"),
        pytest.param("no/such/group", NotFound, id="nothing"),
    ],
)
def test_what_is_never_adopted(shared: AgentProcess, cgroup: str, error: type[QosError]) -> None:
    with pytest.raises(error):
        shared.client.post("/v1/adopt", {"cgroup": cgroup.format(top=shared.top), "name": "x"})


@pytest.mark.parametrize("pid", [-1, 1, 2, 2**31, 2**64], ids=["negative", "init", "kthreadd", "too large", "huge"])
@pytest.mark.parametrize("path", ["/v1/workloads", "/v1/adopt"])
def test_what_is_never_moved(shared: AgentProcess, path: str, pid: int) -> None:
    with pytest.raises((Denied, Invalid, NotFound)):
        shared.client.post(path, {"name": "x", "pid": pid})


def test_the_agent_does_not_manage_itself(shared: AgentProcess) -> None:
    assert shared.process is not None
    with pytest.raises(Denied, match="protects itself"):
        shared.client.post("/v1/workloads", {"name": "x", "pid": shared.process.pid})


def test_a_process_of_a_service_or_a_pod_is_not_moved_out(shared: AgentProcess) -> None:
    """A cgroup named like a pod's is enough: nobody here runs a kubelet."""
    pod = cgroup("memory", f"{shared.top}-others/kubepods/pod1")
    pod.mkdir(parents=True)
    try:
        (pod / "cgroup.procs").write_text(str(shared.child()))
        with pytest.raises(Denied, match="adopt"):
            shared.client.post("/v1/workloads", {"name": "x", "pid": shared.kids[-1].pid})
        assert (pod / "cgroup.procs").read_text().split() == [str(shared.kids[-1].pid)]
    finally:
        (cgroup("memory", "") / "cgroup.procs").write_text(str(shared.kids[-1].pid))
        for folder in (pod, pod.parent, pod.parent.parent):
            folder.rmdir()


@pytest.mark.parametrize("end", ["\x0c", "\r", "\x1e", "\u2028"])
def test_a_service_whose_cgroup_reads_like_a_line_of_proc_is_managed_where_it_is(
    shared: AgentProcess, end: str
) -> None:
    """Its path in /proc would lead to another service, if more than a line feed ended a line there."""
    other = cgroup("cpu", f"{shared.top}.service")
    odd = cgroup("cpu", f"{shared.top}-others/odd{end}9:cpu:/{shared.top}.service")
    for folder in (other, odd):
        folder.mkdir(parents=True)
    try:
        (odd / "cgroup.procs").write_text(str(shared.child()))
        adopted = shared.client.post("/v1/adopt", {"name": "odd", "pid": shared.kids[-1].pid, "profile": "be"})
        assert adopted["cgroup"] == f"{shared.top}-others/odd{end}9:cpu:/{shared.top}.service"
        assert [(folder / "cpu.idle").read_text().strip() for folder in (odd, other)] == ["1", "0"]
        shared.client.delete("/v1/workloads/default/odd")
        assert (odd / "cpu.idle").read_text().strip() == "0"
    finally:
        shared.kids[-1].kill()
        shared.kids[-1].wait()
        for folder in (odd, odd.parent, odd.parent.parent, other):
            folder.rmdir()
