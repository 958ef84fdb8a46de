"""Deeds that leave no value behind: reclaim, kill. Each is on record before it is done.

An eviction is recorded here as well, and then asked for by whoever knows the maker of the workload: see `agent/ring`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from j10ce.kernel.backend import attempt
from j10ce.kernel.record.entry import Did
from j10ce.kernel.record.journal import Journal
from j10ce.kernel.routes import Routes
from j10ce.kernel.slow import SlowWrites
from j10ce.model.knob import Deed
from j10ce.model.plan import Action, Gone, Pending, Refused, Result

NOT_ENFORCED = "proposed only: the node's strategy does not enforce it"


class Actions:
    def __init__(self, routes: Routes, journal: Journal, slow: SlowWrites) -> None:
        self._routes = routes
        self._journal = journal
        self._slow = slow

    def perform(self, actions: Iterable[Action], wall: float) -> Iterator[tuple[Action, Result]]:
        for action in actions:
            yield action, self._perform(action, wall)

    def collect(self) -> list[tuple[Action, Result]]:
        """Those that came back since the last call."""
        return list(self._slow.finished_actions())

    def _perform(self, action: Action, wall: float) -> Result:
        if not action.enforced:
            return Refused(NOT_ENFORCED)
        at = self._routes.place(action.target)
        if at is None:
            return Gone()
        actor = self._routes.actor(action.deed)
        if actor is None and action.deed is not Deed.EVICT:
            needs = self._routes.deeds[action.deed].needs if action.deed in self._routes.deeds else "another kernel"
            return Refused(f"{action.deed.value} is not available here; it needs {needs}")
        if self._slow.acts(action):
            return Pending()
        try:
            self._journal.add(Did(action.deed, action.target, wall, action.owner, action.amount))
        except OSError as e:
            return Refused(f"the journal cannot take {action.deed.value} of {action.target}: {e.strerror}; not done")
        if actor is None:
            return Pending()
        act = partial(actor.act, action, at)
        if action.deed is Deed.RECLAIM:
            self._slow.submit_action(action, lambda: attempt(act))
            return Pending()
        return attempt(act)


def asked(outcomes: Iterable[tuple[Action, Result]]) -> list[Action]:
    """The evictions that are on record, and now to be asked for."""
    return [a for a, result in outcomes if a.deed is Deed.EVICT and isinstance(result, Pending)]
