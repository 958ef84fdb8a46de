"""Starting our own processes: detached, logged, and waited for until they say that they are ready."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from j10ce.cli.dirs import Dirs
from j10ce.errors import Busy, QosError, Unreachable
from j10ce.host import child
from j10ce.kernel.owner import BOOTED

START_S = 60.0
AGENT = "j10ce.agent.main"


def start_agent(dirs: Dirs, *extra: str) -> subprocess.Popen[bytes]:
    """The agent as a process of its own session; returns once it serves."""
    return start(child.python(AGENT, *extra), dirs, "agent")


def lend_agent(dirs: Dirs) -> None:
    """One that ends with its last workload; returns once it serves.

    It may outlive whoever asks for it. systemd ends a session or a service with all that it started, so under systemd
    the agent is a service of its own.
    """
    argv = child.python(AGENT, "--until-idle")
    if not (_systemd_run() and _start_apart(argv, dirs)):
        start(argv, dirs, "agent")


def _systemd_run() -> list[str]:
    """The command that starts services for this user; empty where there is no such manager."""
    run = "/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
    command = shutil.which("systemd-run", path=child.PATH)
    if not os.path.isdir(BOOTED) or not os.path.exists(f"{run}/systemd/private") or not command:
        return []
    return [command, "--quiet", "--collect", *(["--user"] if os.geteuid() else [])]


def _start_apart(argv: list[str], dirs: Dirs) -> bool:
    """Whether the agent serves; False: systemd would not start it. Raises what the agent says when it does not."""
    dirs.make()
    log = dirs.run / "agent.log"
    log.touch(0o600)
    start_at = log.stat().st_size
    environ = dirs.environ()
    passed = (f"--setenv={k}={v}" for k, v in environ.items())
    told = {"Type": "notify", "TimeoutStartSec": f"{START_S:.0f}"} | dict.fromkeys(
        ("StandardOutput", "StandardError"), f"append:{log}"
    )
    properties = (f"--property={name}={value}" for name, value in told.items())
    named = ("--description=j10ce-qos agent, until its last workload ends", f"--unit=j10ce-qos-run-{os.getpid()}")
    command = [*_systemd_run(), *named, *properties, *passed, "--", *argv]
    started = subprocess.run(command, capture_output=True, cwd=child.FOLDER, env=environ)
    if started.returncode and log.stat().st_size > start_at:
        raise QosError(f"the agent could not start: {_last_words(log, start_at)}")
    return started.returncode == 0


def start(argv: list[str], dirs: Dirs, name: str) -> subprocess.Popen[bytes]:
    """Start `argv`; it reports READY=1 as under systemd, or its log says why it did not."""
    dirs.make()
    log = dirs.run / f"{name}.log"
    with tempfile.TemporaryDirectory(prefix="j10ce-qos-") as box, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        notify = os.path.join(box, "notify")
        s.bind(notify)
        s.settimeout(0.2)
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        start_at = os.fstat(fd).st_size
        mask = signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a blocked signal would be inherited, and never arrive
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=fd, stderr=fd, start_new_session=True,
                cwd=child.FOLDER, env={**dirs.environ(), "NOTIFY_SOCKET": notify},
            )  # fmt: skip
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.close(fd)
        _until_ready(process, s, log, start_at, f"the {name}")
    return process


def _until_ready(process: subprocess.Popen[bytes], s: socket.socket, log: Path, start_at: int, what: str) -> None:
    for _ in range(int(START_S / 0.2)):
        try:
            if b"READY=1" in s.recv(4096).splitlines():
                return
        except TimeoutError:
            if process.poll() is not None:
                raise QosError(f"{what} could not start: {_last_words(log, start_at)}") from None
    process.terminate()
    raise Unreachable(f"{what} did not become ready within {START_S:.0f} s; see {log}")


def _last_words(log: Path, start_at: int) -> str:
    with log.open("rb") as f:
        f.seek(start_at)
        lines = f.read()[-4000:].decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it said nothing; see {log}"


def claim(path: Path, what: str) -> int:
    """A lock for the life of this process, told apart by its file; raises Busy with who holds it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 20, 0).decode().strip() or "unknown"
        os.close(fd)
        raise Busy(f"{what} runs already on {path.parent}: process {holder}; stop it there first") from None
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def write_token(path: Path) -> str:
    """A fresh secret for the loopback API, readable by its owner alone."""
    token = secrets.token_urlsafe(32)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w") as f:
        os.fchmod(fd, 0o600)
        f.write(token + "\n")
    return token
