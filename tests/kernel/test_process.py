"""Facts about processes, and handles that outlive a pid's reuse."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from j10ce.kernel.process import Process, alive, descendants, immovable, memberships, pinned, process

ID = "0123456789abcdef" * 4  # of a container
STAT = "42 (a) b (c) S 7 42 42 0 -1 {flags} 1 0 0 0 5 6 0 0 20 0 1 0 {started} 100 200 18446744073709551615"


def fake_proc(root: Path, cgroup: str = "0::/user.slice\n", flags: int = 0x400000) -> str:
    here = root / "42"
    here.mkdir()
    (here / "stat").write_text(STAT.format(flags=flags, started=12345))
    (here / "status").write_text("Name:\ta\nUid:\t1000\t1001\t1000\t1000\n")
    (here / "cgroup").write_text(cgroup)
    return str(root)


def test_this_process_is_known() -> None:
    me = process(os.getpid())
    assert me is not None
    assert (me.pid, me.parent, me.uid) == (os.getpid(), os.getppid(), os.geteuid())
    assert not me.kernel_thread


def test_a_command_with_parentheses_does_not_confuse(tmp_path: Path) -> None:
    proc = process(42, fake_proc(tmp_path))
    assert proc is not None
    assert (proc.command, proc.parent, proc.started, proc.uid) == ("a) b (c", 7, 12345, 1000)


def test_kernel_threads_are_known_by_their_flag(tmp_path: Path) -> None:
    proc = process(42, fake_proc(tmp_path, flags=0x208040))
    assert proc is not None
    assert proc.kernel_thread


def test_no_such_process_is_none() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert process(child.pid) is None
    with pinned(child.pid) as handle:
        assert handle is None


def test_a_pinned_process_is_alive_until_it_ends() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with child, pinned(child.pid) as handle:
        assert handle is not None
        assert alive(handle)
        child.kill()
        child.wait()
        assert not alive(handle)


@pytest.mark.parametrize(("pid", "why"), [(0, "system's own"), (1, "system's own"), (2, "kernel thread")])
def test_what_is_never_moved(pid: int, why: str) -> None:
    proc = process(pid)
    if pid == 2 and not (proc and proc.kernel_thread):
        pytest.skip("Unsupported: kernel threads are not visible from this pid namespace")
    assert why in immovable(pid)


def test_an_ordinary_process_may_be_moved() -> None:
    assert immovable(os.getpid()) == ""


def test_memberships_are_read_per_controller() -> None:
    text = "9:name=systemd:/a\n4:memory:/m\n2:cpu,cpuacct:/c:x\n0::/u (deleted)\n"
    assert dict(memberships(text)) == {
        "name=systemd": "a",
        "memory": "m",
        "cpu": "c:x",
        "cpuacct": "c:x",
        "unified": "u",
    }


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("system.slice/nginx.service", "nginx.service"),
        ("user.slice/user-1.slice/user@1.service/app.slice/app-term.scope", ""),
        ("user.slice/user-1.slice/session-3.scope", ""),
        ("kubepods/burstable/pod1/abc", "kubepods/burstable/pod1/abc"),
        ("kubepods.slice/kubepods-pod1.slice/cri-1.scope", "kubepods.slice/kubepods-pod1.slice/cri-1.scope"),
        ("docker/abc", "docker/abc"),
        (f"system.slice/docker-{ID}.scope", f"system.slice/docker-{ID}.scope"),
        (f"system.slice/docker-{ID}.scope/init", f"system.slice/docker-{ID}.scope/init"),
        (f"machine.slice/libpod-{ID}.scope", f"machine.slice/libpod-{ID}.scope"),
        (f"user.slice/user-1.slice/user@1.service/user.slice/libpod-{ID}.scope/container", None),
        (f"system.slice/nerdctl-{ID}.scope", f"system.slice/nerdctl-{ID}.scope"),
        (f"default/{ID}", f"default/{ID}"),
        ("lxc.payload.web", "lxc.payload.web"),
        ("lxc.payload.web/system.slice/nginx.service", "lxc.payload.web/system.slice/nginx.service"),
        ("user.slice/user-1.slice/session-3.scope/lxc.payload.web", None),
        ("machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt/emulator", None),
        ("machine.slice/machine-box.scope", "machine.slice/machine-box.scope"),
        ("kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1.slice/cri-containerd-1.scope", None),
        ("nomad.slice/share.slice/1.web.scope", "nomad.slice/share.slice/1.web.scope"),
        ("slurm/uid_1/job_2/step_0", "slurm/uid_1/job_2/step_0"),
        ("user.slice/user-1.slice/user@1.service/init.scope", "user.slice/user-1.slice/user@1.service/init.scope"),
        ("init.scope", "init.scope"),
        ("system.slice/nomad.service", "nomad.service"),
        ("user.slice/user-1.slice/session-c1.scope", ""),
        ("user.slice/user-1.slice/session-3.scope/divided", "user.slice/user-1.slice/session-3.scope/divided"),
        ("system.slice/run-u12.scope", ""),
        ("user.slice", ""),
        ("", ""),
        ("j10ce/standard/default_web", ""),
    ],
)
def test_services_containers_and_machines_keep_their_processes(path: str, owner: str | None) -> None:
    """None: the whole path."""
    proc = Process(1, 0, 0, 0, False, "x", {"unified": path})
    assert proc.belongs_to == (path if owner is None else owner)


def test_a_process_of_an_inner_pid_namespace_is_a_container_s_wherever_its_cgroup_is(tmp_path: Path) -> None:
    root = fake_proc(tmp_path, cgroup="0::/any/where\n")
    (tmp_path / "42/status").write_text("Name:\ta\nUid:\t0\t0\t0\t0\nNSpid:\t42\t1\n")
    proc = process(42, root)
    assert proc is not None
    assert (proc.container, proc.belongs_to) == ("any/where", "any/where")


def test_a_name_that_the_kernel_cut_inside_a_character_is_read(tmp_path: Path) -> None:
    root = fake_proc(tmp_path)
    cut = "datenbank-größe".encode()[:13]  # the kernel keeps 15 bytes, wherever they end
    (tmp_path / "42/stat").write_bytes(STAT.format(flags=0, started=1).encode().replace(b"a) b (c", cut))
    proc = process(42, root)
    assert proc is not None
    assert proc.command == "datenbank-gr\ufffd"


def test_all_below_a_process_are_found_parents_first() -> None:
    script = "import subprocess, sys; subprocess.Popen(['sleep', '1000']); print(flush=True); sys.stdin.read()"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {script!r}])"
    with subprocess.Popen([sys.executable, "-c", outer], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as top:
        assert top.stdout is not None
        top.stdout.readline()
        below = descendants(top.pid)
        assert [p.command for p in below][-1] == "sleep"
        assert [p.parent for p in below] == [top.pid, below[0].pid]
        for one in reversed(below):
            os.kill(one.pid, 9)
        top.kill()


def test_a_process_that_ends_while_it_is_read_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: object) -> bytes:
        raise ProcessLookupError(errno.ESRCH, "No such process")

    root = fake_proc(tmp_path)
    monkeypatch.setattr("j10ce.kernel.file.os.read", ended)
    assert process(42, root) is None


def test_a_cgroup_s_name_may_end_with_a_blank(tmp_path: Path) -> None:
    proc = process(42, fake_proc(tmp_path, cgroup="0::/a/b \n"))
    assert proc is not None
    assert proc.path("cpu") == "a/b "


def test_a_controller_on_cgroup2_is_where_cgroup2_says() -> None:
    proc = Process(1, 0, 0, 0, False, "x", {"unified": "u", "cpu": "c"})
    assert (proc.path("cpu"), proc.path("memory")) == ("c", "u")
