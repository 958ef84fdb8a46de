"""Processes of a measurement: started, waited for until they are ready, put where they belong, and then let go."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Sequence
from typing import IO, Final, Self

from j10ce.bench.scratch import child_sources
from j10ce.errors import QosError
from j10ce.host import child

READY_S: Final = 60.0


class Gated:
    """One child of ours that runs a module of this package; it ends with us."""

    def __init__(self, module: str, *arguments: object, pass_fds: Sequence[int] = ()) -> None:
        self.name = module.rpartition(".")[2]
        self._process = subprocess.Popen(
            child.python(module, str(os.getpid()), *map(str, arguments)),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=tuple(pass_fds),
            env=child.environ(os.environ) | child_sources(), cwd=child.FOLDER,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ready(self) -> list[str]:
        """What it says once it waits at its gate. Raises QosError where it does not come so far."""
        readable, _, _ = select.select([_of(self._process.stdout)], [], [], READY_S)
        words = _of(self._process.stdout).readline().decode().split() if readable else []
        if words[:1] != ["ready"]:
            self._process.kill()
            raise QosError(f"the {self.name} did not start: {self.last_words() or f'silent for {READY_S:g} s'}")
        return words[1:]

    def go(self, words: str = "go") -> None:
        pipe = _of(self._process.stdin)
        pipe.write(f"{words}\n".encode())
        pipe.flush()

    def wait(self, seconds: float) -> int | None:
        """Its exit code; None while it runs."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def last_words(self) -> str:
        lines = _of(self._process.stderr).read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def end(self) -> None:
        """And with it all that it started; more than once is as good."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            _of(pipe).close()


def _of(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise QosError("a child was started without its pipes; this is a bug")
    return pipe
