"""One extra thread for writes that may block while memory is reclaimed."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from j10ce.model.knob import Deed, Setting, TargetId, Value
from j10ce.model.plan import Action, Applied, Gone, Refused, ValueChange

Answer = Applied | Refused | Gone
Write = Callable[[], Answer]


class SlowWrites:
    """Writes and reclaims are made one after the other, in the order given. Called from the kernel thread alone."""

    def __init__(self) -> None:
        self._todo: SimpleQueue[tuple[ValueChange | Action, Write]] = SimpleQueue()
        self._done: SimpleQueue[tuple[ValueChange | Action, Answer]] = SimpleQueue()
        self._latest: dict[Setting, Value] = {}
        self._acting: set[tuple[Deed, TargetId]] = set()
        self._acted: list[tuple[Action, Answer]] = []
        self._written: list[tuple[ValueChange, Answer]] = []
        self._thread: Thread | None = None

    def submit(self, change: ValueChange, write: Write) -> None:
        self._latest[change.setting] = change.new
        self._put(change, write)

    def submit_action(self, action: Action, act: Write) -> None:
        self._acting.add(action.what)
        self._put(action, act)

    def _put(self, item: ValueChange | Action, write: Write) -> None:
        self._todo.put((item, write))
        if self._thread is None:
            # A daemon: a write that the kernel holds for minutes must not hold up the end of the process.
            self._thread = Thread(target=self._run, name="slow-writes", daemon=True)
            self._thread.start()

    def under_way(self, setting: Setting) -> bool:
        return setting in self._latest

    def same(self, change: ValueChange) -> bool:
        """Whether exactly this write is already waiting to be made."""
        return change.setting in self._latest and self._latest[change.setting] == change.new

    def acts(self, action: Action) -> bool:
        """Whether that deed is under way there."""
        return action.what in self._acting

    def busy(self, target: TargetId) -> bool:
        return any(s.target == target for s in self._latest) or any(t == target for _, t in self._acting)

    def finished(self) -> list[tuple[ValueChange, Answer]]:
        """The writes that came back since the last call."""
        self._collect()
        back, self._written = self._written, []
        return back

    def finished_actions(self) -> list[tuple[Action, Answer]]:
        self._collect()
        back, self._acted = self._acted, []
        return back

    def _collect(self) -> None:
        while not self._done.empty():
            item, answer = self._done.get()
            if isinstance(item, Action):
                self._acting.discard(item.what)
                self._acted.append((item, answer))
                continue
            if self._latest.get(item.setting) == item.new:
                del self._latest[item.setting]
            self._written.append((item, answer))

    def _run(self) -> None:
        while True:
            item, write = self._todo.get()
            self._done.put((item, write()))
