"""What a user of the same machine sends to the socket of the agent, one function per attack: what it costs others."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from j10ce.agent.ring.what_if import whatif
from j10ce.agent.socket.admission import Caller, check_movable
from j10ce.agent.socket.routes import PlanRequest, _body
from j10ce.errors import Denied, Invalid
from j10ce.http.server import Request, failure
from j10ce.kernel.process import descendants, process
from j10ce.testing import build


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"\\u0061' + b"x" * 20_000 + b'":{' + b'"a":0,' * 200 + b'"a":0}}', id="keys that stand twice"),
        pytest.param(b'{"' + b"x" * 20_000 + b'":0}', id="an unknown field"),
    ],
)
def test_a_long_key_is_repeated_by_its_first_characters(body: bytes) -> None:
    with pytest.raises(Invalid) as refused, socket.socket() as peer:
        _body(Request("POST", "/v1/plan", {}, {}, body, peer), PlanRequest)
    answer = failure(refused.value).body
    assert b"x" * 150 in answer
    assert b"x" * 201 not in answer
    assert len(answer) < 50 * 600


@pytest.mark.parametrize("pods", [1, 100])
def test_a_plan_of_pods_with_very_many_containers_is_refused(pods: int) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x"},
        "spec": {"containers": [{}] * (100_000 // pods)},
    }
    with pytest.raises(Invalid, match="100000: too many containers; send pods of at most 8192"):
        whatif([pod] * pods, build.node(), wall=build.WALL)


# What `splitlines` ends a line at, and a name of a cgroup may hold.
ENDS = ["\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
STAT = "{pid} (x) S {parent} 42 42 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 1 0 12345 100 200 18446744073709551615"


def with_process(proc: Path, pid: int, cgroup: str, parent: int = 1) -> None:
    here = proc / str(pid)
    here.mkdir()
    (here / "stat").write_text(STAT.format(pid=pid, parent=parent))
    (here / "status").write_text("Name:\tx\nUid:\t1000\t1000\t1000\t1000\n")
    (here / "cgroup").write_bytes(cgroup.encode())


@pytest.mark.parametrize("end", ENDS, ids=ascii)
def test_a_name_that_reads_like_a_line_takes_no_process_out_of_its_job(tmp_path: Path, end: str) -> None:
    """The second line won, and root's agent took the process out of its limits."""
    with_process(tmp_path, 42, f"1:cpu:/slurm_job/a{end}1:cpu:/x\n0::/slurm_job/a{end}0::/x\n")
    proc = process(42, str(tmp_path))
    assert proc is not None
    assert proc.cgroups["unified"] == f"slurm_job/a{end}0::/x"
    with pytest.raises(Denied, match="belongs to slurm_job/a"):
        check_movable(proc, "j10ce", Caller(pid=7, uid=0, gid=0))


@pytest.mark.parametrize("cgroup", [*(f"0::/a{end}foo\n" for end in ENDS), "foo\n"], ids=ascii)
def test_a_process_in_an_odd_cgroup_keeps_nobody_from_being_adopted(tmp_path: Path, cgroup: str) -> None:
    with_process(tmp_path, 42, "0::/user.slice\n")
    with_process(tmp_path, 43, "0::/user.slice\n", parent=42)
    with_process(tmp_path, 666, cgroup)
    assert [p.pid for p in descendants(42, str(tmp_path))] == [43]


def test_a_process_that_the_kernel_does_not_tell_of_keeps_nobody_from_being_adopted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a cgroup whose path has more than 4,096 characters it says that the name is too long."""
    with_process(tmp_path, 43, "0::/user.slice\n", parent=42)
    with_process(tmp_path, 666, "", parent=42)
    read = os.read

    def read_or_refuse(fd: int, most: int) -> bytes:
        if os.readlink(f"/proc/self/fd/{fd}").endswith("/666/cgroup"):
            raise OSError(errno.ENAMETOOLONG, "File name too long")
        return read(fd, most)

    monkeypatch.setattr("j10ce.kernel.file.os.read", read_or_refuse)
    assert [p.pid for p in descendants(42, str(tmp_path))] == [43]
