"""A real server to be asked: the service starts one of its own, so that both are where an arm puts them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from j10ce.bench.crowd import redis
from j10ce.bench.scratch import Scratch
from j10ce.bench.stages.stage import Scene
from j10ce.errors import Unsupported


@contextmanager
def driven(scratch: Scratch) -> Iterator[Scene]:
    if redis.program() is None:
        raise Unsupported(redis.PROGRAM, needs=f"its package: `apt-get install {redis.PROGRAM}`")
    yield Scene(service=str(scratch.folder / "redis.sock"))
