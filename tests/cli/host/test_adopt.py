"""adopt and forget: what already runs joins where it is, and gets its own values back."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.session import Session, cgroup, eventually

pytestmark = pytest.mark.host


def files_of(path: str) -> dict[str, str]:
    """Every CPU setting of a cgroup, to the letter."""
    settings = (f for f in cgroup("cpu", path).glob("cpu.*") if not f.name.startswith(("cpu.stat", "cpu.pressure")))
    return {f.name: f.read_text() for f in settings}


def test_a_cgroup_joins_where_it_is_and_forget_gives_its_values_back(stack: Session) -> None:
    mine = stack.own_cgroup("forgotten")
    before = files_of(mine)
    output = stack.says("adopt", "--cgroup", f"/{mine}", "--name", "forgotten", "--profile", "be")
    assert output == f"default/forgotten adopted in {mine}\n"
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


def test_a_process_joins_with_all_that_it_has_started(stack: Session) -> None:
    script = "sleep 1000 & sh -c 'sleep 1000 & wait' & echo ready; wait"
    with subprocess.Popen(["sh", "-c", script], text=True, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        assert eventually(lambda: len(below(child.pid)) == 3)
        stack("adopt", "--pid", str(child.pid), "--name", "family", "--profile", "ls")
        path = stack.json("get", "workloads", "family")["status"]["cgroup"]
        inside = {int(pid) for pid in (cgroup("cpu", path) / "cgroup.procs").read_text().split()}
        assert inside == {child.pid, *below(child.pid)}
        for pid in inside:
            os.kill(pid, signal.SIGKILL)


def below(pid: int) -> list[int]:
    """As the kernel lists them."""
    kids = [int(kid) for f in Path(f"/proc/{pid}/task").glob("*/children") for kid in f.read_text().split()]
    return [one for kid in kids for one in (kid, *below(kid))]


def test_a_process_whose_name_was_cut_inside_a_character_joins(stack: Session) -> None:
    odd = stack.folder / "datenbank-grßöße"  # the kernel keeps 15 bytes of it
    odd.symlink_to(shutil.which("sleep") or "")
    child = subprocess.Popen([odd, "1000"], text=True)
    stack.started.append(child)
    assert eventually(lambda: Path(f"/proc/{child.pid}/comm").read_bytes().startswith(b"datenbank"))
    assert f"default/datenbank-gr-{child.pid} adopted in" in stack.says("adopt", "--pid", str(child.pid))


def test_a_minimum_that_does_not_fit_is_refused_and_nothing_is_adopted(stack: Session) -> None:
    mine = stack.own_cgroup("greedy")
    before = files_of(mine)
    output = stack.fails(5, "adopt", "--cgroup", mine, "--name", "greedy", "--profile", "ls", "--min-cpu", "64")
    assert "cpu 64 wanted, " in output
    assert files_of(mine) == before
    stack.fails(6, "get", "workloads", "greedy")


def test_a_process_whose_minimum_does_not_fit_stays_where_it_was(stack: Session) -> None:
    child = subprocess.Popen(["sleep", "1000"], text=True)
    stack.started.append(child)
    where = Path(f"/proc/{child.pid}/cgroup")
    before = where.read_text()
    output = stack.fails(5, "adopt", "--pid", str(child.pid), "--name", "unmoved", "--min-cpu", "64")
    assert "default/unmoved is not adopted" in output
    assert where.read_text() == before
    stack.fails(6, "get", "workloads", "unmoved")


def test_a_process_is_adopted_with_its_minimum(stack: Session) -> None:
    child = subprocess.Popen(["sleep", "1000"], text=True)
    stack.started.append(child)
    output = stack.says("adopt", "--pid", str(child.pid), "--name", "kept", "--profile", "ls", "--min-cpu", "1m")
    inside = (cgroup("cpu", output.split()[-1]) / "cgroup.procs").read_text().split()
    assert inside == [str(child.pid)]


def limited(stack: Session, name: str) -> tuple[str, int]:
    """(path, a process in it) of a cgroup of the test's own that may have 64 MiB."""
    path = stack.own_cgroup(name)
    folder = cgroup("memory", path)
    limit = next(f for f in ("memory.max", "memory.limit_in_bytes") if (folder / f).exists())
    (folder / limit).write_text(str(64 << 20))
    return path, int((folder / "cgroup.procs").read_text())


def test_a_process_is_not_adopted_out_of_the_limit_of_its_cgroup(stack: Session) -> None:
    path, pid = limited(stack, "limited")
    before = Path(f"/proc/{pid}/cgroup").read_text()
    refused = stack.fails(5, "adopt", "--pid", str(pid), "--name", "limited")
    assert f"process {pid} would leave the limit of 64Mi of memory of cgroup {path}" in refused
    assert f"--cgroup {path}" in refused
    assert Path(f"/proc/{pid}/cgroup").read_text() == before
    assert f"adopted in {path}" in stack.says("adopt", "--cgroup", path, "--name", "limited")


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


def test_a_name_that_a_forgotten_process_still_lives_under_is_not_given_again(stack: Session) -> None:
    child = subprocess.Popen(["sleep", "1000"], text=True)
    stack.started.append(child)
    stack("adopt", "--pid", str(child.pid), "--name", "twice", "--profile", "ls")
    stack("forget", "twice")
    output = stack.fails(125, "run", "--name", "twice", "--", "true")
    assert f"default_twice still holds process {child.pid} of an earlier default/twice" in output
    stack("adopt", "--pid", str(child.pid), "--name", "twice", "--profile", "ls")


def test_what_is_not_managed_cannot_be_forgotten(stack: Session) -> None:
    assert "there is no local workload default/nobody" in stack.fails(6, "forget", "nobody")
