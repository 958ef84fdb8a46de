"""All processes in a cgroup with a limit of memory: no page of anybody else is taken. Ours adopts its children.

What a box holds is reclaimed from inside it, so that a floor of one child is what the others cannot take.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from j10ce.bench.layouts.layout import Attended, Crowd, Seating, Untended
from j10ce.bench.layouts.ours import OwnAgent
from j10ce.bench.layouts.pods import MadeGroups
from j10ce.bench.stages.stage import Scene
from j10ce.errors import QosError
from j10ce.host.mounts import Hierarchies
from j10ce.kernel import file

REFAULTS: Final = "workingset_refault_file "


class RefaultCount(Untended):
    """Pages that one cgroup has read again."""

    def __init__(self, path: str) -> None:
        self._path = path

    def refaults(self) -> int | None:
        rows = (file.read(self._path) or "").splitlines()
        return next((int(row.removeprefix(REFAULTS)) for row in rows if row.startswith(REFAULTS)), None)


class Boxed:
    """`agent`: adopts the children, with what the service is promised; None: nobody does.

    Pages belong to the group that read them first, so that those of the last turn have to go.
    """

    def __init__(self, top: str, scene: Scene, agent: OwnAgent | None, profile: str) -> None:
        self._top, self._scene, self._agent, self._profile = top, scene, agent, profile

    @contextmanager
    def around(self, crowd: Crowd, /) -> Iterator[Attended]:
        if self._scene.fresh:
            self._scene.fresh()
        groups, adopted = MadeGroups(self._top, "memory"), list[str]()
        try:
            groups.make(self._top)
            groups.set(self._top, "memory.max", float(self._scene.limit))
            service = groups.make(f"{self._top}/service")
            groups.join(service, crowd.service)
            adopted += self._adopt(f"box-{crowd.service}", service, profile=self._profile, minimum=self._scene.promised)
            for n, pid in enumerate(crowd.managed):
                path = groups.make(f"{self._top}/other{n}")
                groups.join(path, pid)
                adopted += self._adopt(f"box-{pid}", path, profile="be")
            yield RefaultCount(Hierarchies.discover().file("memory", service, "memory.stat"))
        finally:
            for name in reversed(adopted):
                with suppress(QosError):  # the agent has seen the end itself
                    self._ask("DELETE", f"/v1/workloads/default/{name}")
            groups.remove()

    def _adopt(self, name: str, path: str, **wanted: object) -> list[str]:
        if self._agent is None:
            return []
        self._ask("POST", "/v1/adopt", {"name": name, "cgroup": path, **wanted})
        return [name]

    def _ask(self, method: str, path: str, body: object = None) -> None:
        if self._agent is not None:
            self._agent.ask(method, path, body)


def _conforms(boxed: Boxed) -> Seating:
    return boxed
