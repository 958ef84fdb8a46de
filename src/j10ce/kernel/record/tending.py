"""Looking after what is held by many: whoever comes later gets what the others have."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from j10ce.kernel.backend import attempt
from j10ce.kernel.record.drift import Contests
from j10ce.kernel.record.journal import Journal
from j10ce.kernel.routes import Routes
from j10ce.model.knob import TENDED, Setting
from j10ce.model.plan import Change, Refused, Result, ValueChange

AT_ONCE: Final = 32  # settings looked after in one go, about 2 ms; the others in turn


class Tending:
    """What is contested is left to re-assertion, which gives in after a while; tending would not."""

    def __init__(self, routes: Routes, journal: Journal, contests: Contests) -> None:
        self._routes = routes
        self._journal = journal
        self._contests = contests
        self._turn: list[Setting] = []
        for setting in self._ours():
            self._recall(setting)

    def run(self, now: float, most: int = AT_ONCE) -> list[tuple[Change, Result]]:
        """What was refused, if anything; who got what the others have is no news."""
        contested = {drift.setting for drift in self._contests.present(now)}
        if not self._turn:
            self._turn = [s for s in self._ours() if s not in contested]
        now_due, self._turn = self._turn[:most], self._turn[most:]
        return [refused for setting in now_due if (refused := self._tend(setting))]

    def _ours(self) -> Iterator[Setting]:
        return (s for s in self._journal.owners if s.knob in TENDED)

    def _tend(self, setting: Setting) -> tuple[Change, Result] | None:
        tends, at, ours = self._routes.tends(setting), self._routes.place(setting.target), self._journal.ours(setting)
        if tends is None or at is None or not ours:
            return None
        answer = attempt(partial(tends.tend, setting, ours[-1], at))
        if not isinstance(answer, Refused):
            return None  # one that is gone is noticed by whoever reads it
        owner = self._journal.owners[setting]
        return ValueChange(setting, ours[-1], ours[-1], owner, "for those that came since"), answer

    def _recall(self, setting: Setting) -> None:
        """An agent before this one wrote it; what cannot be read now is found out by the first look."""
        tends, at, ours = self._routes.tends(setting), self._routes.place(setting.target), self._journal.ours(setting)
        if tends and at and ours:
            attempt(partial(tends.recall, setting, ours[-1], at))
