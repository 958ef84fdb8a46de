"""What a run leaves on the machine while it lasts: a folder in /run, and cgroups whose names begin with the run's own.

A child of the run, the janitor (`python -m j10ce.bench.janitor`), takes all of it away once the run has ended, however
it ended. Where that child is killed, too, the next run cleans up first.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

from j10ce.daemon.lock import claim
from j10ce.errors import Busy, Denied, QosError
from j10ce.host import child

RUNS: Final = Path("/run/j10ce-qos-prove")
PLACE: Final = "J10CE_PROVE_DIR"  # names another; runs of one place take turns
TOP: Final = "j10ceprove"
LOCK: Final = "lock"
STOPS: Final = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class Scratch:
    """The names of one run's places."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run, self.state = folder, folder / "run", folder / "state"
        self.top = f"{TOP}{folder.name}"

    @property
    def box(self) -> str:
        return f"{self.top}-box"

    @property
    def pods(self) -> str:
        return f"{self.top}-pods"

    def environ(self) -> dict[str, str]:
        """What makes an agent one of this run alone."""
        folders = {"J10CE_RUN_DIR": self.run, "J10CE_STATE_DIR": self.state}
        folders |= {"J10CE_CONFIG_DIR": self.folder / "etc"}
        return {name: str(path) for name, path in folders.items()} | {"J10CE_TOP": self.top}

    def given_back(self) -> bool:
        return not self.folder.exists()


class Tidied:
    """A scratch that is cleaned up when the block ends, or this process does. One run at a time."""

    def __enter__(self) -> Scratch:
        refuse_unprivileged()
        runs = Path(os.environ.get(PLACE) or RUNS)
        runs.mkdir(mode=0o700, exist_ok=True)
        refuse_of_others(runs)
        lock = claim(runs / LOCK, str(os.getpid()))
        if lock is None:
            raise Busy(f"another `prove` runs: process {(runs / LOCK).read_text().strip()}")
        self._lock = lock
        for stale in abandoned(runs):
            _janitor(stale).communicate()
        self._scratch = Scratch(runs / str(os.getpid()))
        self._scratch.folder.mkdir(mode=0o700)
        self._janitor = _janitor(self._scratch.folder)
        return self._scratch

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with patiently():
            self._janitor.communicate()
            os.close(self._lock)
        if error is None and not self._scratch.given_back():
            raise QosError(f"{self._scratch.folder} could not be cleaned up; the next `prove` tries again")


def refuse_unprivileged() -> None:
    if os.geteuid():
        raise Denied("prove makes cgroups and changes priorities: run it as root")


def refuse_of_others(runs: Path) -> None:
    """What lies there says which process is ended as an agent of ours, and what is removed."""
    seen = os.lstat(runs)
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        whose = f"{stat.filemode(seen.st_mode)} of user {seen.st_uid}"
        raise Denied(
            f"{runs} is {whose}, so others could have a run end what they like; {PLACE} names a folder of root's"
        )


def abandoned(runs: Path) -> list[Path]:
    """Folders of runs that have ended without cleaning up; whoever asks holds the lock."""
    return [folder for folder in sorted(runs.iterdir()) if folder.name.isdecimal()]


def _janitor(folder: Path) -> subprocess.Popen[bytes]:
    """It begins when the other end of its standard input is closed: by us, or by our end."""
    argv = child.python("j10ce.bench.janitor", str(folder))
    environ = child.environ(os.environ) | Scratch(folder).environ() | child_sources()
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=child.FOLDER,
        env=environ, start_new_session=True,
    )  # fmt: skip


def child_sources() -> dict[str, str]:
    """A clone that is not installed is named by PYTHONPATH, and by nothing that a caller's folder decides."""
    named = os.environ.get("PYTHONPATH", "")
    return {"PYTHONPATH": named} if named and all(map(os.path.isabs, named.split(os.pathsep))) else {}


@contextmanager
def patiently() -> Iterator[None]:
    """Ctrl-C a second time does not keep us from putting everything back."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def forget(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
