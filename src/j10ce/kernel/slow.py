"""One extra thread for writes that may block while memory is reclaimed."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from j10ce.model.knob import Setting, TargetId, Value
from j10ce.model.plan import Applied, Gone, Refused, ValueChange

Write = Callable[[], Applied | Refused | Gone]
Finished = tuple[ValueChange, Applied | Refused | Gone]


class SlowWrites:
    """Writes are made one after the other, in the order given. Called from the kernel thread alone."""

    def __init__(self) -> None:
        self._todo: SimpleQueue[tuple[ValueChange, Write]] = SimpleQueue()
        self._done: SimpleQueue[Finished] = SimpleQueue()
        self._latest: dict[Setting, Value] = {}
        self._thread: Thread | None = None

    def submit(self, change: ValueChange, write: Write) -> None:
        self._latest[change.setting] = change.new
        self._todo.put((change, write))
        if self._thread is None:
            # A daemon: a write that the kernel holds for minutes must not hold up the end of the process.
            self._thread = Thread(target=self._run, name="slow-writes", daemon=True)
            self._thread.start()

    def under_way(self, setting: Setting) -> bool:
        return setting in self._latest

    def same(self, change: ValueChange) -> bool:
        """Whether exactly this write is already waiting to be made."""
        return change.setting in self._latest and self._latest[change.setting] == change.new

    def busy(self, target: TargetId) -> bool:
        return any(s.target == target for s in self._latest)

    def finished(self) -> list[Finished]:
        """What came back since the last call."""
        back: list[Finished] = []
        while not self._done.empty():
            change, result = self._done.get()
            if self._latest.get(change.setting) == change.new:
                del self._latest[change.setting]
            back.append((change, result))
        return back

    def _run(self) -> None:
        while True:
            change, write = self._todo.get()
            self._done.put((change, write()))
