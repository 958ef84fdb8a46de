"""A box of memory, smaller than what is read in it, from a disk of the run's own: no page of others is taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from j10ce.bench.scratch import Scratch
from j10ce.bench.stages.disk import BYTES, attached
from j10ce.bench.stages.stage import Scene
from j10ce.errors import Unsupported
from j10ce.host.mounts import Hierarchies

MIB: Final = 1 << 20
WORKING_SET: Final = 48 * MIB
PROMISED: Final = "96Mi"  # that, and the processes
LIMIT: Final = 160 * MIB


@contextmanager
def box(scratch: Scratch) -> Iterator[Scene]:
    if Hierarchies.discover().version("memory") != 2:
        raise Unsupported("a floor of memory", needs="cgroup v2; v1 has none")
    with attached(BYTES) as disk:
        rest = f"{disk.path}:{WORKING_SET}:{BYTES - WORKING_SET}"
        yield Scene(f"{disk.path}:0:{WORKING_SET}", rest, {"memory": PROMISED}, limit=LIMIT, fresh=disk.forget)
