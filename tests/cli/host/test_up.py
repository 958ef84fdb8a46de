"""`up` as a process: what it says, how it ends, what it mends, and that it is alone."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from tests.cli.session import PATIENCE_S, Session, cgroup, eventually

pytestmark = pytest.mark.host
# Weights follow from whoever else is on the machine; these do not.
VALUES = ("cpu.idle", "cpu.cfs_quota_us", "cpu.max")


def values(path: str) -> dict[str, str]:
    """The CPU files of a cgroup of either version."""
    return {f.name: f.read_text() for f in cgroup("cpu", path).iterdir() if f.name in VALUES}


def test_it_tells_what_works_where_the_api_is_and_what_to_type(cli: Session) -> None:
    output = cli.output(cli.up())
    assert "can enforce: " in output
    assert "cpu.weight" in output
    assert "http://127.0.0.1:" in output
    assert str(cli.run_dir / "kubeconfig") in output
    assert "Next, in another terminal:\n  j10ce-qos apply" in output
    assert "read-only" not in output


def test_ctrl_c_restores_every_value_and_removes_our_cgroups(cli: Session) -> None:
    mine = cli.own_cgroup("mine")
    before = values(mine)
    up = cli.up()
    cli("adopt", "--cgroup", mine, "--name", "mine", "--profile", "be")
    assert values(mine) != before
    up.send_signal(signal.SIGINT)
    assert up.wait(PATIENCE_S) == 0, cli.output(up)
    assert values(mine) == before
    assert not cgroup("cpu", cli.top).exists()
    assert "1 still runs, without QoS, in the cgroup it was given: mine\n`j10ce-qos revert` removes" in cli.output(up)
    assert cli.output(up).endswith("\ndone\n")
    assert not (cli.run_dir / "token").exists()


def test_ctrl_c_names_what_a_hold_keeps_and_the_way_back(cli: Session) -> None:
    mine = cli.own_cgroup("mine")
    before = values(mine)
    up = cli.up()
    cli("adopt", "--cgroup", mine, "--name", "mine", "--profile", "ls")
    cli("hold", "mine", "cpu.max", "--value", "50000", "--why", "incident 42")
    assert eventually(lambda: "50000" in " ".join(values(mine).values()))
    up.send_signal(signal.SIGINT)
    assert up.wait(PATIENCE_S) == 1, cli.output(up)
    output = cli.output(up).splitlines()[-2:]
    assert output[0].startswith("left alone: workload/default/mine cpu.max, held at 50000 (0.5 CPUs) by ")
    assert "incident 42" in output[0]
    assert output[1] == "`j10ce-qos revert --force` puts them back"
    log = (cli.run_dir / "agent.log").read_text()
    assert 'setting="workload/default/mine cpu.max"' in log
    assert "ValueChange(" not in log
    assert "1 setting restored, 0 left alone" in cli.says("revert", "--force")
    assert values(mine) == before


def test_a_cgroup_whose_command_ended_after_ctrl_c_is_removed_by_revert(cli: Session) -> None:
    up = cli.up()
    child = cli.running("late", "--profile", "ls")
    folder = cgroup("cpu", cli.json("get", "workloads", "late")["status"]["cgroup"])
    up.send_signal(signal.SIGINT)
    assert up.wait(PATIENCE_S) == 0, cli.output(up)
    child.terminate()
    child.wait(PATIENCE_S)
    assert folder.exists()
    assert "0 settings restored, 0 left alone, 3 cgroups removed" in cli.says("revert")
    assert not folder.exists()


def test_what_runs_on_since_an_earlier_up_is_named_with_the_way_to_take_it_back(cli: Session) -> None:
    up = cli.up()
    child = cli.running("kept", "--profile", "ls")
    (pid,) = (
        (cgroup("cpu", cli.json("get", "workloads", "kept")["status"]["cgroup"]) / "cgroup.procs").read_text().split()
    )
    up.send_signal(signal.SIGINT)
    assert up.wait(PATIENCE_S) == 0, cli.output(up)
    way = f"adopt --pid {pid} --name kept"
    assert f"process {pid} runs on without QoS; `j10ce-qos {way}` manages it again\n" in cli.output(cli.up())
    assert "default/kept adopted" in cli.says(*way.split())
    assert child.poll() is None


def test_sigterm_keeps_every_setting(cli: Session) -> None:
    up = cli.up()
    cli.running("web", "--profile", "ls", "--min-cpu", "200m", "--cpu", "1")
    path = cli.json("get", "workloads", "web")["status"]["cgroup"]
    before = values(path)
    assert "100000" in " ".join(before.values())
    up.send_signal(signal.SIGTERM)
    assert up.wait(PATIENCE_S) == 0
    assert values(path) == before
    cli.up()
    assert values(path) == before
    assert [w["metadata"]["name"] for w in cli.json("get", "workloads")["items"]] == ["web"]


def test_a_killed_child_is_started_again(cli: Session) -> None:
    up = cli.up()
    cli.running("web", "--profile", "ls")
    agent, manager = cli.agent_pid(), manager_of(up)
    os.kill(agent, signal.SIGKILL)
    assert eventually(lambda: cli.agent_pid() not in (0, agent) and "web" in cli("get", "workloads", code=None).stdout)
    os.kill(manager, signal.SIGKILL)
    assert eventually(lambda: cli("get", "qosprofiles", code=None).returncode == 0 and manager_of(up) != manager)
    assert up.poll() is None
    assert "the agent ended with code -9, starting it again" in cli.output(up)
    assert "the manager ended with code -9, starting it again" in cli.output(up)


def manager_of(up: subprocess.Popen[str]) -> int:
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(up.pid)], capture_output=True, text=True, check=True
    )
    return next((int(line.split()[0]) for line in listed.stdout.splitlines() if "j10ce.manager.main" in line), 0)


def test_the_second_one_refuses_names_the_first_and_disturbs_nothing(cli: Session) -> None:
    first = cli.up()
    token = (cli.run_dir / "token").read_text()
    output = cli.fails(7, "up", "--listen", "127.0.0.1:1")
    assert f"runs already on {cli.run_dir}: process {first.pid}" in output
    assert (cli.run_dir / "token").read_text() == token
    assert "ls" in cli.says("get", "qosprofiles")


def test_sighup_reads_the_configuration_again(cli: Session) -> None:
    up = cli.up()
    (cli.config_dir / "a.yaml").write_text("armed: false\n")
    up.send_signal(signal.SIGHUP)
    assert eventually(lambda: cli.json("status")["armed"] is False)
    (cli.config_dir / "a.yaml").write_text("armed: sometimes\n")
    up.send_signal(signal.SIGHUP)
    assert eventually(lambda: "config.refused" in (cli.run_dir / "agent.log").read_text())
    assert up.poll() is None
    assert cli.json("status")["armed"] is False
