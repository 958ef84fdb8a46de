"""An agent as a user runs it, for this run alone: its own folders, its own cgroups, its own memory of what it wrote."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

from msgspec.structs import replace

from j10ce.agent.cache import Cache
from j10ce.bench import machine
from j10ce.bench.crowd.mortal import dying_by
from j10ce.bench.layouts.layout import Attended, Crowd, Seating, Untended
from j10ce.bench.scratch import Scratch, child_sources
from j10ce.errors import QosError, Unreachable
from j10ce.host import child
from j10ce.model.kinds import Meta, NodeStrategy, NodeStrategySpec
from j10ce.policy.document.document import FORMAT, NodeDocument, digest
from j10ce.policy.profiles import builtin

START_S: Final = 60.0
NODE: Final = "prove"


class Peer(Protocol):
    """Who answers at an address."""

    def call(self, method: str, path: str, body: object = None) -> Any: ...


Connect = Callable[[str], Peer]


class OwnAgent:
    """A child that gives every value back when it is interrupted, and is interrupted by the kernel when we end."""

    def __init__(self, scratch: Scratch, connect: Connect, strategy: NodeStrategySpec) -> None:
        self._peer, self._log = connect(f"unix:{scratch.run}/agent.sock"), scratch.folder / "agent.log"
        _tell(scratch, strategy)
        environ = child.environ(os.environ) | child_sources() | scratch.environ()
        words = child.python("j10ce.agent.main", "--node-name", NODE)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=child.FOLDER,
                start_new_session=True, env=environ, preexec_fn=dying_by(signal.SIGINT),
            )  # fmt: skip
        self._until_it_serves()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return self._peer.call(method, path, body)

    def _until_it_serves(self) -> None:
        ends = time.monotonic() + START_S
        while self._process.poll() is None and time.monotonic() < ends:
            with suppress(Unreachable):
                self.ask("GET", "/v1/top")
                return
            time.sleep(0.05)
        lines = self._log.read_text(errors="replace").strip().splitlines()
        raise QosError(f"the agent of this run did not start: {lines[-1] if lines else 'it said nothing'}")


def _tell(scratch: Scratch, strategy: NodeStrategySpec) -> None:
    """As if a control plane had said so before."""
    scratch.state.mkdir(mode=0o700)
    said = NodeStrategy(metadata=Meta(name=NODE), spec=strategy)
    document = NodeDocument(node=NODE, profiles=builtin(), strategies=(said,))
    Cache(scratch.run, scratch.state).keep_document(replace(document, hash=digest(document), format=FORMAT))


class UnderProfile:
    """The service under one profile with a CPU floor and what else it is promised, each antagonist under `be`."""

    def __init__(self, agent: OwnAgent, profile: str, floor: float, promised: Mapping[str, str]) -> None:
        self._agent, self._profile = agent, profile
        self._minimum = {"cpu": f"{round(floor * 1000)}m", **promised}

    @contextmanager
    def around(self, crowd: Crowd, /) -> Iterator[Attended]:
        placed: list[str] = []
        try:
            placed.append(
                self._place(f"service-{crowd.service}", crowd.service, profile=self._profile, minimum=self._minimum)
            )
            placed += [self._place(f"hog-{pid}", pid, profile="be") for pid in crowd.managed]
            yield Untended()
        finally:
            for name in reversed(placed):
                with suppress(QosError):  # the agent has seen the end itself
                    self._agent.ask("DELETE", f"/v1/workloads/default/{name}?ended=1")

    def _place(self, name: str, pid: int, **wanted: object) -> str:
        answer = self._agent.ask("POST", "/v1/workloads", {"name": name, "pid": pid, **wanted})
        if answer["unmet"]:
            raise QosError(f"profile {wanted['profile']}: {'; '.join(answer['unmet'])}")
        return name


def _conforms(ours: UnderProfile) -> Seating:
    return ours


def cost(agent: OwnAgent) -> tuple[float, float]:
    """(CPU seconds so far, resident MiB), of the agent and of the processes that it keeps."""
    family = machine.family(agent.pid)
    return machine.cpu_s(family), sum(map(machine.memory_mib, family))
