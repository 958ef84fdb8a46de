"""Starting our own processes: detached, logged, and waited for until they say that they are ready."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from j10ce.cli.dirs import SYSTEM_RUN, Dirs
from j10ce.cli.output import warn
from j10ce.errors import Busy, QosError, Unreachable
from j10ce.host import child
from j10ce.kernel.owner import BOOTED

START_S = 60.0
PATIENCE_S = 5.0  # what takes longer to start is not silent about it
TURN_S = 0.2
STOPS = {signal.SIGINT, signal.SIGTERM}
OWN_NAME = re.compile(r"^j10ce-qos-[a-z-]+: ")
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
    settings = {"Type": "notify", "TimeoutStartSec": f"{START_S:.0f}"} | dict.fromkeys(
        ("StandardOutput", "StandardError"), f"append:{log}"
    )
    properties = (f"--property={name}={value}" for name, value in settings.items())
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
        s.settimeout(TURN_S)
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        start_at = os.fstat(fd).st_size
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=fd, stderr=fd, start_new_session=True,
                cwd=child.FOLDER, env={**dirs.environ(), "NOTIFY_SOCKET": notify}, preexec_fn=_unblock,
            )  # fmt: skip
        finally:
            os.close(fd)
        _until_ready(process, s, log, start_at, f"the {name}")
    return process


def _unblock() -> None:
    """In the child alone: a blocked signal would be inherited, and never arrive. Our own stay blocked, so that Ctrl-C
    meanwhile leaves no process behind that nobody knows."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _until_ready(process: subprocess.Popen[bytes], s: socket.socket, log: Path, start_at: int, what: str) -> None:
    """Raises what keeps it from being ready; Ctrl-C ends the wait also where signals are blocked."""
    for turn in range(int(START_S / TURN_S)):
        try:
            if b"READY=1" in s.recv(4096).splitlines():
                return
        except TimeoutError:
            if process.poll() is not None:
                raise QosError(f"{what} could not start: {_last_words(log, start_at)}") from None
        if STOPS & signal.sigpending():
            _end(process)
            raise KeyboardInterrupt
        if turn == int(PATIENCE_S / TURN_S):
            warn(f"{what} is not ready yet: {_last_words(log, start_at)}")
    _end(process)
    raise Unreachable(f"{what} did not become ready within {START_S:.0f} s: {_last_words(log, start_at)}; see {log}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_words(log: Path, start_at: int) -> str:
    """The last line that it wrote, without its own name."""
    with log.open("rb") as f:
        f.seek(start_at)
        lines = f.read()[-4000:].decode(errors="replace").strip().splitlines()
    return OWN_NAME.sub("", lines[-1]) if lines else f"it said nothing; see {log}"


def refuse_taken(address: str) -> None:
    """Raises Busy where someone listens on an address already: a child would only say so in its log."""
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host.strip("[]"), int(port)), family=family):
            return
    except OSError as e:
        if e.errno != errno.EADDRINUSE:
            raise QosError(f"cannot listen on {address}: {e.strerror}") from None
    system = os.geteuid() and (SYSTEM_RUN / "up.lock").exists()
    who = "root's `j10ce-qos up` may have it; with sudo, or in group j10ce, you use that one" if system else ""
    hint = f"choose another with --listen 127.0.0.1:{int(port) % 65535 + 1}"
    raise Busy(f"port {port} of {host} is taken by another process: {f'{who}, or ' if who else ''}{hint}")
