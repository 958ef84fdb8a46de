"""For how long nodes have obeyed a revision while this process led, by its own clock."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime
from typing import NamedTuple

from msgspec import UNSET

from j10ce.model.kinds import Policy
from j10ce.policy.document.rollout import done


class Since(NamedTuple):
    revision: int
    applied: datetime  # names the time from which on all obey; of another clock, perhaps
    at_s: float


class Watched:
    """A leader that takes over begins to watch anew: what its predecessor's clock said may be an hour off."""

    def __init__(self) -> None:
        self._since: dict[str, Since] = {}  # by uid

    def take(self, policy: Policy, now: float) -> float:
        """Its status as it is, and for how many seconds we know it to be so."""
        uid, state = policy.metadata.uid, policy.status.rollout
        if state.applied is UNSET or done(state):
            self._since.pop(uid, None)
            return 0.0
        since = self._since.get(uid)
        if since is None or since[:2] != (state.revision, state.applied):
            since = self._since[uid] = Since(state.revision, state.applied, now)
        return now - since.at_s

    def forget_all_but(self, there: Container[str]) -> None:
        self._since = {uid: since for uid, since in self._since.items() if uid in there}
