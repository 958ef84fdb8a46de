"""The real command on this host: own directories, own top cgroup; whatever it started is ended and removed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from j10ce.host.mounts import Hierarchies

PATIENCE_S = 150.0
Ended = subprocess.CompletedProcess[str]
Running = subprocess.Popen[str]
numbers = count()

NOBODY = 65534
# Clones and interpreters may lie where only root may look: this nobody may look everywhere, and write nowhere.
AS_NOBODY = [
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all,+dac_read_search",
    "--ambient-caps=-all,+dac_read_search", "--bounding-set=-all,+dac_read_search",
]  # fmt: skip


def eventually(claim: Callable[[], object], seconds: float = PATIENCE_S) -> bool:
    """Whether it becomes true before a deadline that only broken code reaches."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        with suppress(OSError):
            if claim():
                return True
        time.sleep(0.05)
    return False


def cgroup(controller: str, path: str) -> Path:
    return Path(Hierarchies.discover().directory(controller, path))


class Session:
    def __init__(self, folder: Path, top: str, clone: Path) -> None:
        self.folder, self.top, self.clone = folder, top, clone
        self.run_dir, self.state_dir, self.config_dir = folder / "run", folder / "state", folder / "etc"
        self.config_dir.mkdir()
        self.environ = {
            **os.environ,
            "PYTHONPATH": str(clone / "src"),
            "J10CE_RUN_DIR": str(self.run_dir),
            "J10CE_STATE_DIR": str(self.state_dir),
            "J10CE_CONFIG_DIR": str(self.config_dir),
            "J10CE_TOP": top,
        }
        self.started: list[Running] = []
        self.made: list[Path] = []

    # ------------------------------------------------------------------ commands

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "j10ce.cli.main", *words]

    def __call__(self, *words: str, code: int | None = 0, **options: Any) -> Ended:
        """Run to the end; `code` is what is expected, None is anything."""
        ended = subprocess.run(
            self.command(*words), env=self.environ, capture_output=True, text=True, timeout=PATIENCE_S, cwd=self.clone,
            check=False, **options,
        )  # fmt: skip
        assert "Traceback" not in ended.stderr, ended.stderr
        assert code in (None, ended.returncode), f"{words}: {ended.returncode}\n{ended.stdout}{ended.stderr}"
        return ended

    def says(self, *words: str, **options: Any) -> str:
        return self(*words, **options).stdout

    def fails(self, code: int, *words: str, **options: Any) -> str:
        return self(*words, code=code, **options).stderr

    def json(self, *words: str) -> Any:
        return json.loads(self.says(*words, "-o", "json"))

    def start(self, *words: str, **options: Any) -> Running:
        """Its output is in `output(process)`."""
        with (self.folder / f"out-{len(self.started)}").open("w+") as out:
            fields = {"stdout": out, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL, **options}
            child = subprocess.Popen(self.command(*words), env=self.environ, text=True, cwd=self.clone, **fields)
        self.started.append(child)
        return child

    def output(self, child: Running) -> str:
        return (self.folder / f"out-{self.started.index(child)}").read_text()

    # ------------------------------------------------------------------ scenes

    def up(self, *words: str) -> Running:
        """Returns once it has printed what to type next."""
        child = self.start("up", "--listen", f"127.0.0.1:{free_port()}", *words)
        assert eventually(lambda: "explain web" in self.output(child) or child.poll() is not None)
        assert child.poll() is None, self.output(child)
        return child

    def running(self, name: str, *options: str) -> Running:
        """A command under `run` that stays; returns once the agent lists it as running."""
        child = self.start("run", "--name", name, *options, "--", "sleep", "1000")
        assert eventually(lambda: f"{name} in " in self.output(child) or child.poll() is not None)
        assert child.poll() is None, self.output(child)
        return child

    def own_cgroup(self, name: str) -> str:
        """A cgroup of the test's own beside ours, with a process in it, in the hierarchies of cpu and memory."""
        path, kid = f"{self.top}-{name}", subprocess.Popen(["sleep", "1000"], text=True)
        self.started.append(kid)
        for controller in ("cpu", "memory"):
            folder = cgroup(controller, path)
            folder.mkdir(exist_ok=True)
            (folder / "cgroup.procs").write_text(str(kid.pid))
            self.made.append(folder)
        return path

    def agent_pid(self) -> int:
        """As its lock has it; 0 when there is none."""
        try:
            return int((self.run_dir / "agent.lock").read_text().split()[0])
        except (OSError, IndexError):
            return 0

    def file(self, path: str, name: str) -> Path:
        return cgroup(name.split(".")[0], path) / name

    def clean(self) -> None:
        """Ours end first, so that nothing is started or written again; then the cgroups go."""
        for child in self.started:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
                child.send_signal(signal.SIGCONT)
        for child in self.started:
            with suppress(subprocess.TimeoutExpired):
                child.wait(10)
            child.kill()
            child.wait()
        if pid := self.agent_pid():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        mounts = Hierarchies.discover().in_use().values()
        tops = [Path(m.path, top) for m in mounts for top in (self.top, f"{self.top}_besteffort")]
        for folder in (*self.made, *tops):
            assert eventually(lambda folder=folder: remove_tree(folder)), f"{folder} stays"


def remove_tree(folder: Path) -> bool:
    for inner, _, _ in os.walk(folder, topdown=False):
        for pid in Path(inner, "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        os.rmdir(inner)
    return not folder.exists()


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def session(folder: Path, clone: Path) -> Iterator[Session]:
    """With nothing running yet."""
    one = Session(folder, f"j10cetest-cli-{os.getpid()}-{next(numbers)}", clone)
    try:
        yield one
    finally:
        one.clean()
