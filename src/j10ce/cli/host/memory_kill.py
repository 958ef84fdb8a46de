"""Whether the kernel ended a command because its cgroup had reached its memory limit: by the cgroup's own counters."""

from __future__ import annotations

from pathlib import Path

from j10ce.errors import Unsupported
from j10ce.host.mounts import Hierarchies
from j10ce.model.resource import spell


def limit_that_killed(path: str) -> str:
    """The limit, as people write it; empty where it was another kill, or where the counters cannot be read."""
    try:
        folder = Path(Hierarchies.discover().directory("memory", path))
        killed, reached, limit = _v2(folder) if (folder / "memory.events").exists() else _v1(folder)
    except (OSError, Unsupported):  # the cgroup is gone already, between open and read as well; or nothing counts here
        return ""
    return spell("memory", int(limit)) if killed and reached and limit.isdigit() else ""


def _v2(folder: Path) -> tuple[int, int, str]:
    events = _counts(folder / "memory.events")
    return events.get("oom_kill", 0), events.get("oom", 0), (folder / "memory.max").read_text().strip()


def _v1(folder: Path) -> tuple[int, int, str]:
    """Its count of kills has those of the whole machine, too; that of hits is of this limit alone."""
    killed = _counts(folder / "memory.oom_control").get("oom_kill", 0)
    reached = int((folder / "memory.failcnt").read_text())
    return killed, reached, (folder / "memory.limit_in_bytes").read_text().strip()


def _counts(file: Path) -> dict[str, int]:
    return {name: int(number) for name, number in (line.split() for line in file.read_text().splitlines())}
