"""Who else writes our settings: noticed, answered a few times, then yielded. Never a fight."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from j10ce.model.knob import Setting, TargetId, Value, render

REASSERTIONS: Final = 3
WITHIN_S: Final = 600.0


class Drift(NamedTuple):
    """Someone else changed a setting of ours."""

    setting: Setting
    ours: Value
    theirs: Value
    at: float  # monotonic
    reasserted: int  # in the last ten minutes
    yielded: bool  # we gave in; the setting stays as they want it


@dataclass
class _Contest:
    drift: Drift
    reassertions: list[float] = field(default_factory=list)
    unanswered: bool = True
    yielded: bool = False


class Contests:
    """A contested setting is re-asserted at most three times in ten minutes; then it is theirs until it is ours again
    by their own hand, or until `forgive`."""

    def __init__(self) -> None:
        self._by_setting: dict[Setting, _Contest] = {}

    def notice(self, setting: Setting, ours: Value, present: Value, now: float) -> Drift:
        contest = self._by_setting.get(setting)
        drift = Drift(setting, ours, present, now, 0, False)
        if contest is None:
            contest = self._by_setting[setting] = _Contest(drift)
        contest.drift, contest.unanswered = drift, True
        return self._describe(contest, now)

    def answer(self, setting: Setting, now: float) -> str:
        """Called before each write: why it must not happen, or nothing. Counts a re-assertion."""
        contest = self._by_setting.get(setting)
        if contest is None or not (contest.unanswered or contest.yielded):
            return ""
        recent = [t for t in contest.reassertions if now - t < WITHIN_S]
        if contest.yielded or len(recent) >= REASSERTIONS:
            contest.yielded = True
            theirs = render(setting.knob, contest.drift.theirs)
            return f"yielded: someone else set {setting.knob} to {theirs} again after {REASSERTIONS} re-assertions"
        contest.reassertions = [*recent, now]
        contest.unanswered = False
        return ""

    def settle(self, setting: Setting) -> None:
        """The setting holds our value by their hand."""
        contest = self._by_setting.get(setting)
        if contest is not None and (contest.yielded or contest.unanswered):
            del self._by_setting[setting]

    def forgive(self, setting: Setting) -> None:
        """An operator said that it is ours."""
        self._by_setting.pop(setting, None)

    def drop(self, target: TargetId) -> None:
        for setting in [s for s in self._by_setting if s.target == target]:
            del self._by_setting[setting]

    def present(self, now: float) -> list[Drift]:
        """Every contest of the last ten minutes, and all that were yielded."""
        for setting, contest in list(self._by_setting.items()):
            if not contest.yielded and now - contest.drift.at >= WITHIN_S:
                del self._by_setting[setting]
        return [self._describe(c, now) for c in self._by_setting.values()]

    def _describe(self, contest: _Contest, now: float) -> Drift:
        recent = sum(1 for t in contest.reassertions if now - t < WITHIN_S)
        return contest.drift._replace(reasserted=recent, yielded=contest.yielded)
