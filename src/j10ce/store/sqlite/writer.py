"""One thread that writes: everything that waits goes into one transaction (group commit)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from itertools import chain
from queue import Empty, SimpleQueue
from typing import NamedTuple

from j10ce.errors import StoreError
from j10ce.model.stored import Key
from j10ce.store.sqlite.database import ChangeRow, Database, Trim


class Job(NamedTuple):
    """A row and who waits for it. Without a row: someone who waits for what was queued before."""

    epoch: int
    done: asyncio.Future[None]
    row: ChangeRow | None
    discard: Key | None = None  # that nobody can read


Jobs = list[Job]
Settle = Callable[[Jobs, StoreError | None], None]


class Writer:
    """Jobs are written in the order of `put`, and settled in that order on the event loop that waits for them.

    A failure refuses every job of its epoch, also those still queued: they were decided on top of writes that never
    happened. The owner moves to the next epoch when it learns of the failure.
    """

    def __init__(self, database: Database, settle: Settle) -> None:
        self._database, self._settle = database, settle
        self._queue: SimpleQueue[Sequence[Job | Trim]] = SimpleQueue()  # an empty piece is the end
        self._failed: tuple[int, StoreError] | None = None
        self._thread = threading.Thread(target=self._run, name="sqlite-writer", daemon=True)
        self._thread.start()

    def put(self, work: Sequence[Job | Trim]) -> None:
        self._queue.put(work)

    def close(self) -> None:
        """Blocks until everything queued is on disk."""
        self._queue.put(())
        self._thread.join()

    def _run(self) -> None:
        open_ = True
        while open_:
            pieces = _take(self._queue)
            open_ = () not in pieces
            batch = list(chain.from_iterable(pieces))
            self._write(self._allowed(batch), [trim for trim in batch if isinstance(trim, Trim)])
        self._database.close()

    def _allowed(self, batch: Sequence[Job | Trim]) -> Jobs:
        jobs = [job for job in batch if isinstance(job, Job)]
        if self._failed is None:
            return jobs
        epoch, failure = self._failed
        self._answer([job for job in jobs if job.epoch <= epoch], failure)
        return [job for job in jobs if job.epoch > epoch]

    def _write(self, jobs: Jobs, trims: list[Trim]) -> None:
        failure = None
        try:
            rows = [job.row for job in jobs if job.row]
            discards = [job.discard for job in jobs if job.discard]
            if rows or trims or discards:
                self._database.write(rows, trims, discards)
        except StoreError as e:
            failure = e
            if jobs:
                self._failed = (jobs[-1].epoch, failure)
        self._answer(jobs, failure)

    def _answer(self, jobs: Jobs, failure: StoreError | None) -> None:
        loop = jobs[0].done.get_loop() if jobs else None
        if loop and not loop.is_closed():
            loop.call_soon_threadsafe(self._settle, jobs, failure)


def _take(queue: SimpleQueue[Sequence[Job | Trim]]) -> list[Sequence[Job | Trim]]:
    """Wait for one piece of work, then take all that is there, up to the end."""
    pieces = [queue.get()]
    try:
        while pieces[-1]:
            pieces.append(queue.get_nowait())
    except Empty:
        pass
    return pieces
