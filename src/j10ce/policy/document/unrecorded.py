"""Generations that this process has seen and that are not in the history yet.

Every manager remembers them, leader or not: whoever leads next records what was edited while nobody led. So does an
agent on Kubernetes: a canary that follows its policy at once takes nothing from nodes that are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from j10ce.model.kinds import Policy, PolicyRevision
from j10ce.model.stored import Event
from j10ce.policy.lifetime import revision_of

KEPT: Final = 10  # revisions of each policy, in the history and here


class Unrecorded:
    """`recorded` says whether the present generation of a policy is in the history."""

    def __init__(self, recorded: Callable[[Policy], bool]) -> None:
        self._recorded = recorded
        self._seen: dict[str, dict[int, Policy]] = {}  # by uid and generation, the oldest first

    def of(self, policy: Policy) -> Sequence[Policy]:
        """The oldest first."""
        return tuple(self._seen.get(policy.metadata.uid, {}).values())

    def before(self, policy: Policy) -> Iterator[PolicyRevision]:
        """What it was before, as the history will have it."""
        return (revision_of(p) for p in self.of(policy) if p.metadata.generation < policy.metadata.generation)

    def take(self, event: Event) -> None:
        """Before documents are rendered, which go by it."""
        obj = event.object
        if isinstance(obj, Policy):
            self._policy(obj, gone=event.type == "DELETED")
        elif isinstance(obj, PolicyRevision) and event.type != "DELETED":
            for owner in obj.metadata.owner_references:
                self._forget(owner.uid, obj.revision)

    def _policy(self, policy: Policy, *, gone: bool) -> None:
        uid, generation = policy.metadata.uid, policy.metadata.generation
        if gone:
            self._seen.pop(uid, None)
        elif not self._recorded(policy):
            seen = self._seen.setdefault(uid, {})
            seen[generation] = policy
            if len(seen) > KEPT:
                del seen[next(iter(seen))]

    def _forget(self, uid: str, generation: int) -> None:
        seen = self._seen.get(uid, {})
        seen.pop(generation, None)
        if not seen:
            self._seen.pop(uid, None)
