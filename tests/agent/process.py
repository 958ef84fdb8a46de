"""A real agent process in its own directories and below its own top cgroup; everything is removed afterwards."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from j10ce.cli.client import Client
from j10ce.errors import QosError
from j10ce.host.mounts import Hierarchies

START_S = 150.0
numbers = count()


class AgentProcess:
    def __init__(self, folder: Path, top: str, clone: Path) -> None:
        self.run_dir, self.state_dir, self.config_dir = folder / "run", folder / "state", folder / "etc"
        self.top = top
        self.process: subprocess.Popen[bytes] | None = None
        self.log = folder / "agent.log"
        self.environ = {
            **os.environ,
            "PYTHONPATH": str(clone / "src"),
            "J10CE_RUN_DIR": str(self.run_dir),
            "J10CE_STATE_DIR": str(self.state_dir),
            "J10CE_CONFIG_DIR": str(self.config_dir),
            "J10CE_TOP": top,
        }
        self.inside: tuple[str, ...] = ()  # words before its command
        self.kids: list[subprocess.Popen[bytes]] = []
        self.client = Client(f"unix:{self.run_dir / 'agent.sock'}")

    def start(self, *arguments: str, **environ: str) -> AgentProcess:
        """Returns once it says READY=1."""
        self.run_dir.mkdir(parents=True, exist_ok=True)
        address = self.run_dir.parent / "notify"
        address.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s, self.log.open("ab") as log:
            s.bind(str(address))
            s.settimeout(START_S)
            self.process = subprocess.Popen(
                [*self.inside, sys.executable, "-m", "j10ce.agent.main", *arguments],
                env={**self.environ, "NOTIFY_SOCKET": str(address), **environ},
                stdout=log,
                stderr=log,
            )
            while b"READY=1" not in s.recv(4096):
                pass
        return self

    def refused(self, *arguments: str) -> str:
        """What one that does not start says."""
        command = [sys.executable, "-m", "j10ce.agent.main", *arguments]
        ended = subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=START_S, check=False)
        assert ended.returncode != 0
        return ended.stderr

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(START_S)

    def child(self) -> int:
        self.kids.append(subprocess.Popen(["sleep", "1000"]))
        return self.kids[-1].pid

    def place(self, name: str, **fields: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.post("/v1/workloads", {"name": name, "pid": self.child(), **fields})
        return answer

    def clean(self) -> None:
        for kid in self.kids:
            kid.kill()
            kid.wait()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for mount in Hierarchies.discover().in_use().values():
            tops = (f"{mount.path}/{self.top}", f"{mount.path}/{self.top}_besteffort")
            for folder in (inner for top in tops for inner, _, _ in os.walk(top, topdown=False)):
                assert eventually(partial(remove, folder))  # what the agent started may take a moment to die with it


@contextmanager
def one_agent(folder: Path, clone: Path) -> Iterator[AgentProcess]:
    """Not started yet."""
    one = AgentProcess(folder, f"j10cetest-{os.getpid()}-{next(numbers)}", clone)
    try:
        yield one
    finally:
        one.clean()


def cgroup(controller: str, path: str) -> Path:
    return Path(Hierarchies.discover().directory(controller, path))


def remove(folder: str) -> bool:
    os.rmdir(folder)
    return True


def eventually(claim: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Whether it becomes true before a deadline that only a broken agent reaches."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        with suppress(QosError, OSError):
            if claim():
                return True
        time.sleep(0.05)
    return False


def ticks(agent: AgentProcess) -> float:
    """How often the whole ring has run."""
    lines = agent.client.get("/metrics").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith('j10ce_ring_runs_total{cause="tick"}'))
