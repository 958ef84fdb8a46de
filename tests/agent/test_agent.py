"""A real agent process on this machine's cgroups: what it places, protects, remembers and gives back."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from j10ce.errors import Busy, Conflict, Denied, Invalid, NotFound, QosError
from tests.agent.process import AgentProcess, cgroup, eventually

pytestmark = pytest.mark.host
NOBODY = 65534


def members(controller: str, path: str) -> list[int]:
    return [int(pid) for pid in (cgroup(controller, path) / "cgroup.procs").read_text().split()]


def values(top: str, names: tuple[str, ...] = ("cpu.shares", "cpu.weight", "cpu.idle")) -> dict[str, str]:
    root = cgroup("cpu", top)
    return {str(f): f.read_text() for name in names for f in root.rglob(name)}


def test_a_process_is_placed_with_its_knobs_written(agent: AgentProcess) -> None:
    placed = agent.start().place("web", profile="ls", minimum={"cpu": "100m"})
    assert placed["cgroup"] == f"{agent.top}/sensitive/default_web"
    assert members("cpu", placed["cgroup"]) == [agent.kids[0].pid]
    assert members("memory", placed["cgroup"]) == [agent.kids[0].pid]
    (listed,) = agent.client.get("/v1/workloads")["items"]
    assert (listed["metadata"]["name"], listed["status"]["tier"]) == ("web", "sensitive")
    assert listed["status"]["floor"]["cpu"] == "100m"


def test_usage_is_reported_in_amounts_that_people_read(agent: AgentProcess) -> None:
    kid = subprocess.Popen(["sh", "-c", "read _; exec sleep 1000"], stdin=subprocess.PIPE)
    agent.kids.append(kid)
    agent.start().place("web", profile="ls", pid=kid.pid)
    assert kid.stdin is not None
    kid.stdin.write(b"go: what it takes from here on is charged to its cgroup\n")
    kid.stdin.close()

    def memory() -> str:
        (listed,) = agent.client.get("/v1/workloads")["items"]
        return str(listed["status"].get("usage", {}).get("memory", "0"))  # none until its process is in

    assert eventually(lambda: memory() != "0")
    assert memory().endswith(("Ki", "Mi", "Gi"))


def test_it_runs_in_a_cgroup_of_its_own(agent: AgentProcess) -> None:
    agent.start()
    assert agent.process is not None
    assert agent.process.pid in members("cpu", f"{agent.top}/agent")


def test_explain_names_the_winner_and_its_reason(agent: AgentProcess) -> None:
    agent.start().place("web", profile="ls", minimum={"cpu": "100m"})
    text = agent.client.get("/v1/explain", target="workload/default/web", knob="cpu.weight")["text"]
    assert "floors" in text
    assert "floor 100m" in text


@pytest.mark.parametrize(
    ("error", "request_"),
    [
        pytest.param(Denied, {"pid": 1}, id="PID 1"),
        pytest.param(Denied, {"pid": 2}, id="a kernel thread"),
        pytest.param(NotFound, {"pid": 4194304}, id="nobody"),
        pytest.param(Invalid, {"name": "../escape"}, id="a name that leaves the tree"),
        pytest.param(Invalid, {"profile": "nope"}, id="an unknown profile"),
        pytest.param(Invalid, {"minimum": {"cpu": "lots"}}, id="a malformed quantity"),
        pytest.param(Invalid, {"surprise": 1}, id="an unknown field"),
    ],
)
def test_bad_placements_are_refused(agent: AgentProcess, error: type[QosError], request_: dict[str, object]) -> None:
    agent.start()
    with pytest.raises(error):
        agent.client.post("/v1/workloads", {"name": "x", "pid": agent.child(), **request_})
    assert agent.client.get("/v1/workloads")["items"] == []


@pytest.mark.parametrize("path", ["/", "", "../..", "init.scope", "{top}", "{top}/agent", "no/such/group"])
def test_cgroups_that_are_never_adopted(agent: AgentProcess, path: str) -> None:
    agent.start()
    with pytest.raises((Denied, NotFound, Invalid)):
        agent.client.post("/v1/adopt", {"cgroup": path.format(top=agent.top), "name": "x"})


def test_names_are_unique(agent: AgentProcess) -> None:
    agent.start().place("web", profile="ls")
    with pytest.raises(Conflict):
        agent.place("web", profile="ls")


def test_a_workload_ends_with_its_last_process(agent: AgentProcess) -> None:
    placed = agent.start().place("web", profile="ls")
    agent.kids[0].kill()
    agent.kids[0].wait()
    assert eventually(lambda: not agent.client.get("/v1/workloads")["items"])
    assert eventually(lambda: not cgroup("cpu", placed["cgroup"]).exists())


def test_an_operators_edit_under_a_hold_survives(agent: AgentProcess) -> None:
    placed = agent.start().place("crunch", profile="burstable")
    held = {"target": "workload/default/crunch", "knobs": ["cpu.weight"], "forSeconds": 600, "why": "incident 42"}
    agent.client.post("/v1/holds", held)
    file = cgroup("cpu", placed["cgroup"]) / "cpu.shares"
    file.write_text("77")
    agent.place("another", profile="burstable")
    runs = ticks(agent)
    assert eventually(lambda: ticks(agent) > runs + 2)
    assert file.read_text().strip() == "77"
    assert agent.client.delete("/v1/holds", target="workload/default/crunch", knobs="cpu.weight")["released"]
    assert eventually(lambda: file.read_text().strip() != "77", 60)


def ticks(agent: AgentProcess) -> float:
    lines = agent.client.get("/metrics").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith('j10ce_ring_runs_total{cause="tick"}'))


def test_a_hold_that_cuts_a_floor_is_refused_with_the_numbers(agent: AgentProcess) -> None:
    agent.start().place("web", profile="ls", minimum={"cpu": "500m"})
    held = {"target": "workload/default/web", "knobs": ["cpu.max"], "forSeconds": 60, "why": "x", "value": "10000"}
    with pytest.raises(Denied, match="500m"):
        agent.client.post("/v1/holds", held)
    assert agent.client.post("/v1/holds", {**held, "breaksReservation": True})["expires"]


def test_killed_and_started_again_it_gives_back_what_it_found(agent: AgentProcess) -> None:
    """An adopted cgroup has values of its own; they come back to the letter."""
    mine = cgroup("cpu", f"{agent.top}-mine")
    mine.mkdir()
    try:
        (mine / "cpu.shares").write_text("321")
        before = {f.name: f.read_text() for f in mine.glob("cpu.*") if f.name != "cpu.stat"}
        kid = agent.child()
        (mine / "cgroup.procs").write_text(str(kid))
        agent.start()
        agent.client.post("/v1/adopt", {"cgroup": mine.name, "name": "mine", "profile": "be"})
        agent.place("web", profile="ls", minimum={"cpu": "100m"})
        assert (mine / "cpu.idle").read_text().strip() == "1"
        agent.stop(signal.SIGKILL)
        agent.start()
        names = [w["metadata"]["name"] for w in agent.client.get("/v1/workloads")["items"]]
        assert sorted(names) == ["mine", "web"]
        assert agent.client.post("/v1/revert", {})["left"] == []
        assert {f.name: f.read_text() for f in mine.glob("cpu.*") if f.name != "cpu.stat"} == before
    finally:
        agent.clean()
        mine.rmdir()


def test_terminated_it_keeps_every_setting(agent: AgentProcess) -> None:
    placed = agent.start().place("web", profile="ls", minimum={"cpu": "100m"})
    before = values(placed["cgroup"])
    assert agent.stop(signal.SIGTERM) == 0
    assert values(placed["cgroup"]) == before
    agent.start()
    assert values(placed["cgroup"]) == before
    assert [w["metadata"]["name"] for w in agent.client.get("/v1/workloads")["items"]] == ["web"]


def test_interrupted_it_leaves_nothing_behind(agent: AgentProcess) -> None:
    agent.start().place("web", profile="ls")
    agent.kids[0].kill()
    agent.kids[0].wait()
    assert agent.stop(signal.SIGINT) == 0
    assert not cgroup("cpu", agent.top).exists()


def test_the_second_agent_refuses_and_names_the_first(agent: AgentProcess) -> None:
    agent.start()
    assert agent.process is not None
    assert str(agent.process.pid) in agent.refused()


def test_disarmed_it_writes_nothing(agent: AgentProcess) -> None:
    agent.start()
    agent.client.post("/v1/disarm", {})
    placed = agent.place("web", profile="ls")
    assert any("the agent is disarmed; `j10ce-qos arm`" in note for note in placed["notes"])
    assert not cgroup("cpu", placed["cgroup"]).exists()
    agent.client.post("/v1/arm", {})
    assert eventually(lambda: members("cpu", placed["cgroup"]) == [agent.kids[0].pid])


def test_disarm_outlives_a_restart(agent: AgentProcess) -> None:
    agent.start()
    agent.client.post("/v1/disarm", {})
    agent.stop()
    agent.start()
    assert agent.client.get("/v1/status")["armed"] is False


def test_a_reload_does_not_arm_behind_the_kill_switch(agent: AgentProcess) -> None:
    agent.config_dir.mkdir(parents=True, exist_ok=True)
    (agent.config_dir / "agent.yaml").write_text("armed: false\n")
    agent.start()
    agent.client.post("/v1/disarm", {})
    (agent.config_dir / "agent.yaml").write_text("armed: true\n")
    assert agent.client.post("/v1/reload", {})["reloaded"]
    assert agent.client.get("/v1/status")["armed"] is False
    agent.client.post("/v1/arm", {})
    assert agent.client.get("/v1/status")["armed"] is True


def test_what_is_forgotten_is_given_back_and_its_process_goes_on(agent: AgentProcess) -> None:
    placed = agent.start().place("job", profile="burstable", limits={"cpu": "300m"})
    quota = cgroup("cpu", placed["cgroup"]) / "cpu.cfs_quota_us"
    assert quota.read_text().strip() == "30000"
    agent.client.delete("/v1/workloads/default/job")
    assert quota.read_text().strip() == "-1"
    assert (quota.parent / "cgroup.procs").read_text().split() == [str(agent.kids[0].pid)]
    runs = ticks(agent)
    assert eventually(lambda: ticks(agent) > runs + 2)
    assert agent.client.get("/v1/status")["refused"] == []
    agent.kids[0].kill()
    agent.kids[0].wait()
    assert eventually(lambda: not quota.parent.exists())
    assert eventually(lambda: not quota.parent.parent.exists()), "and its tier with it"


def test_until_idle_it_ends_with_its_last_workload(agent: AgentProcess) -> None:
    agent.start("--until-idle").place("web", profile="ls")
    agent.kids[0].kill()
    agent.kids[0].wait()
    assert agent.process is not None
    assert agent.process.wait(60) == 0
    assert not cgroup("cpu", agent.top).exists()


def test_a_steady_agent_takes_over_from_one_that_ends(agent: AgentProcess, clone: Path) -> None:
    placed = agent.start("--until-idle").place("web", profile="ls", minimum={"cpu": "100m"})
    first = agent.process
    agent.start("--takeover")
    assert first is not None
    assert first.wait(60) == 0
    (shares,) = values(
        placed["cgroup"], ("cpu.shares",)
    ).values()  # what the floor needs beside whoever is busy by then
    assert int(shares) >= 1024
    assert [w["metadata"]["name"] for w in agent.client.get("/v1/workloads")["items"]] == ["web"]


@pytest.mark.slow
def test_a_thousand_arrivals_at_once_are_all_placed(agent: AgentProcess) -> None:
    agent.start()
    count = 1000
    pids = [agent.child() for _ in range(count)]

    def one(n: int) -> str:
        answer = agent.client.post("/v1/workloads", {"name": f"w{n}", "profile": "be", "pid": pids[n]})
        return str(answer["cgroup"])

    with ThreadPoolExecutor(50) as crowd:
        placed = list(crowd.map(one, range(count)))
    assert len(set(placed)) == count
    assert members("cpu", placed[-1]) == [pids[-1]]
    assert len(agent.client.get("/v1/workloads")["items"]) == count


def test_a_corrupt_cache_is_kept_and_reported(agent: AgentProcess) -> None:
    agent.state_dir.mkdir(parents=True)
    (agent.state_dir / "document.json").write_text("{ broken")
    agent.start().place("web", profile="ls")
    assert "document.corrupt" in agent.client.get("/v1/status")["warnings"][0]


def test_a_bad_configuration_keeps_the_old_one(agent: AgentProcess) -> None:
    agent.start()
    agent.config_dir.mkdir()
    (agent.config_dir / "a.yaml").write_text("period: fast\n")
    with pytest.raises(Invalid):
        agent.client.post("/v1/reload", {})
    (agent.config_dir / "a.yaml").write_text("period: 2s\narmed: false\n")
    assert agent.client.post("/v1/reload", {})["reloaded"]
    assert eventually(lambda: agent.client.get("/v1/status")["armed"] is False)


def test_a_plan_touches_nothing(agent: AgentProcess) -> None:
    agent.start()
    wanted = {
        "apiVersion": "j10ce.io/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "paper", "labels": {"j10ce.io/qos-profile": "ls"}},
        "spec": {"minimum": {"cpu": "100m"}},
    }
    answer = agent.client.post("/v1/plan", {"objects": [wanted]})
    assert "workload/default/paper cpu.weight" in answer["text"]
    assert not cgroup("cpu", f"{agent.top}/sensitive").exists()


AS_NOBODY = """
import os, sys
sys.path.insert(0, {src!r})
from j10ce.cli.client import Client
from j10ce.errors import QosError
os.setgroups([]); os.setgid({nobody}); os.setuid({nobody})
client = Client("unix:" + sys.argv[1])
try:
    print("read", client.get("/v1/status")["armed"])
    client.post("/v1/workloads", {{"name": "x", "pid": os.getpid()}})
    print("placed")
except QosError as e:
    print(type(e).__name__, e)
"""


def as_nobody(agent: AgentProcess, clone: Path) -> str:
    for folder in (agent.run_dir, *agent.run_dir.parents):
        if folder.stat().st_uid == 0 and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    code = AS_NOBODY.format(nobody=NOBODY, src=str(clone / "src"))
    command = [sys.executable, "-c", code, str(agent.run_dir / "agent.sock")]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=150).stdout


def test_a_stranger_cannot_open_the_socket(agent: AgentProcess, clone: Path) -> None:
    agent.start()
    assert as_nobody(agent, clone).startswith("Denied")


def test_where_everyone_may_read_only_root_and_the_group_may_write(agent: AgentProcess, clone: Path) -> None:
    agent.config_dir.mkdir(parents=True)
    (agent.config_dir / "a.yaml").write_text("socketMode: '0666'\n")
    agent.start()
    lines = as_nobody(agent, clone).splitlines()
    assert lines[0] == "read True"
    assert lines[1].startswith("Denied")


def test_without_privileges_it_plans_and_writes_nothing(agent: AgentProcess, tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if str(folder).startswith("/tmp/"):
            folder.chmod(0o777)
    agent.log.touch()
    agent.log.chmod(0o666)
    drop = "os.setgroups([]); os.setgid(65534); os.setuid(65534)"
    command = f"import os; from j10ce.agent.main import main; {drop}; main()"
    with agent.log.open("ab") as log:
        process = subprocess.Popen([sys.executable, "-c", command], env=agent.environ, stderr=log)
    try:
        assert eventually(lambda: agent.client.get("/v1/status")["armed"] is False)
        assert "agent.unarmed" in agent.log.read_text()
    finally:
        process.terminate()
        assert process.wait(30) == 0


def test_metrics_on_loopback_refuse_a_foreign_host(agent: AgentProcess) -> None:
    agent.config_dir.mkdir(parents=True)
    port = 20000 + os.getpid() % 20000
    (agent.config_dir / "a.yaml").write_text(f"metrics: 127.0.0.1:{port}\n")
    agent.start()

    def status(path: str, **headers: str) -> int:
        with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            connection.request("GET", path, headers=headers)
            return connection.getresponse().status

    assert status("/metrics") == 200
    assert status("/metrics", Host="evil.example") == 403
    assert status("/metrics", Origin="http://evil.example") == 403
    assert status("/v1/status") == 404


def test_the_lock_error_is_busy(agent: AgentProcess) -> None:
    from j10ce.daemon.lock import Lock

    agent.start()
    with pytest.raises(Busy):
        Lock(agent.run_dir).take("steady")
