"""adopt and forget: what already runs joins where it is, and gets its own values back."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.session import Session, cgroup

pytestmark = pytest.mark.host


def files_of(path: str) -> dict[str, str]:
    """Every CPU setting of a cgroup, to the letter."""
    settings = (f for f in cgroup("cpu", path).glob("cpu.*") if not f.name.startswith(("cpu.stat", "cpu.pressure")))
    return {f.name: f.read_text() for f in settings}


def test_a_cgroup_joins_where_it_is_and_forget_gives_its_values_back(stack: Session) -> None:
    mine = stack.own_cgroup("forgotten")
    before = files_of(mine)
    told = stack.says("adopt", "--cgroup", f"/{mine}", "--name", "forgotten", "--profile", "be")
    assert told == f"default/forgotten adopted in {mine}\n"
    assert files_of(mine)["cpu.idle"].strip() == "1"
    assert "managed already, as default/forgotten" in stack.fails(5, "adopt", "--cgroup", mine, "--name", "again")
    assert stack.says("forget", "forgotten") == "default/forgotten forgotten\n"
    assert files_of(mine) == before
    assert "forgotten" not in stack.says("get", "workloads")


def test_a_process_joins(stack: Session) -> None:
    child = subprocess.Popen(["sleep", "1000"], text=True)
    stack.started.append(child)
    stack("adopt", "--pid", str(child.pid), "--name", "joined", "--profile", "ls")
    status = stack.json("get", "workloads", "joined")["status"]
    assert str(child.pid) in (cgroup("cpu", status["cgroup"]) / "cgroup.procs").read_text().split()


def test_a_minimum_that_does_not_fit_is_refused_and_nothing_is_adopted(stack: Session) -> None:
    mine = stack.own_cgroup("greedy")
    before = files_of(mine)
    told = stack.fails(5, "adopt", "--cgroup", mine, "--name", "greedy", "--profile", "ls", "--min-cpu", "64")
    assert "cpu 64 wanted, " in told
    assert files_of(mine) == before
    stack.fails(6, "get", "workloads", "greedy")


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        pytest.param(["--pid", "1"], 5, "process 1 is never managed", id="PID 1"),
        pytest.param(["--pid", "2"], 5, "kernel thread", id="a kernel thread"),
        pytest.param(["--pid", "4194304"], 6, "there is no process 4194304", id="nobody"),
        pytest.param(["--cgroup", "/"], 5, "the root cgroup is never managed", id="the root"),
        pytest.param(["--cgroup", "../.."], 5, "could leave the cgroup root", id="a path that escapes"),
        pytest.param(["--cgroup", "{top}"], 5, "is managed already", id="our own tree"),
        pytest.param(["--cgroup", "{top}/agent"], 5, "own cgroup", id="the agent's own"),
        pytest.param(["--cgroup", "no/such"], 6, "there is no cgroup no/such", id="no cgroup"),
        pytest.param(["--unit", "x.service"], None, "systemd", id="a unit without systemd"),
        pytest.param([], 2, "exactly one of --pid, --unit, --cgroup", id="nothing"),
        pytest.param(["--pid", "7", "--cgroup", "x"], 2, "exactly one", id="two things"),
    ],
)
def test_what_is_never_adopted(stack: Session, options: list[str], code: int | None, says: str) -> None:
    ended = stack("adopt", *(o.format(top=stack.top) for o in options), code=code)
    assert ended.returncode != 0
    assert says in ended.stderr


def test_what_is_not_managed_cannot_be_forgotten(stack: Session) -> None:
    assert "there is no local workload default/nobody" in stack.fails(6, "forget", "nobody")
