"""Staged rollout of a policy: which nodes have its present revision, and what the agents' reports make of that.

A node obeys either the present revision or the stable one. Cohorts below `canaryPercent` take the present one; where
it fails the rollout stops: nobody else takes it, nodes that failed go back to the stable one, those that hold it stay.
All state is in the objects: the spec says how far, the status says what happened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.model.kinds import (
    Condition,
    MinimalReservationPolicy,
    MinimalReservationPolicySpec,
    PolicyRevision,
    QoSProfile,
    QoSProfileSpec,
    Rollout,
)
from j10ce.model.progress import RolloutStatus
from j10ce.model.schema import convert, plain

Policy: TypeAlias = QoSProfile | MinimalReservationPolicy
Spec: TypeAlias = QoSProfileSpec | MinimalReservationPolicySpec

WATCHED_S: Final = 30.0  # three reports: so long a revision has to hold on all nodes before it is the stable one
MOST_BACK: Final = 50  # when more nodes fail, all go back, not just those


class Stage(NamedTuple):
    """Who has the present revision."""

    share: int  # cohorts below it
    back: frozenset[str] = frozenset()
    stable: int | None = None  # what everyone else has; 0: nothing, None: nobody has looked yet

    @property
    def whole(self) -> bool:
        return self.share == 100 and not self.back

    def takes(self, node: str, cohort: int) -> bool:
        return cohort < self.share and node not in self.back


class Seen(NamedTuple):
    """What the nodes that should obey the present revision say; silent ones count only if they had taken it."""

    wanted: int = 0
    applied: int = 0
    failing: Mapping[str, str] = MappingProxyType({})  # node: why; also those that fell silent after taking it


def stage(policy: Policy) -> Stage:
    """An edit resumes a rollout that stopped; an edit of `rollout` alone goes on with the same change."""
    rollout, state = policy.spec.rollout, policy.status.rollout
    if rollout is UNSET:
        return Stage(100)
    same = state.change == change(policy.spec)
    if same and done(state):
        return Stage(100)
    stable = state.stable if state.revision else None
    stopped = same and state.stopped and state.revision == policy.metadata.generation
    if not stopped and not rollout.paused:
        return Stage(rollout.canary_percent, stable=stable)
    if not same:
        return Stage(0, stable=stable)
    return Stage(min(state.reached, rollout.canary_percent), frozenset(state.back), stable)


def change(spec: Spec) -> str:
    """Names what a spec asks for, `rollout` aside."""
    content = msgspec.json.encode(plain(replace(spec, rollout=UNSET)), order="sorted")
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def done(state: RolloutStatus) -> bool:
    return 0 < state.stable == state.revision


def advance(policy: Policy, seen: Seen, revisions: Iterable[PolicyRevision], wall: float) -> RolloutStatus:
    """Where the rollout stands after the latest reports. `revisions` are the policy's own."""
    rollout, state, generation = policy.spec.rollout, policy.status.rollout, policy.metadata.generation
    what, now = change(policy.spec), stage(policy)
    if rollout is UNSET or (state.change == what and done(state)):
        return RolloutStatus(revision=generation, change=what, reached=100, stable=generation)
    stable = state.stable if state.revision else whole_before(policy, revisions)
    step = RolloutStatus(
        revision=generation, change=what, reached=now.share, back=tuple(sorted(now.back)), stable=stable
    )
    if state.change == what and state.revision == generation:
        step = replace(step, stopped=state.stopped, applied=state.applied)
    if rollout.stop_on_failures and seen.failing:
        return _stopped(step, seen)
    return step if step.stopped else _settled(step, rollout, seen, wall)


def whole_before(policy: Policy, revisions: Iterable[PolicyRevision]) -> int:
    """The newest earlier revision that was meant for every node; 0: there is none."""
    earlier = [r for r in revisions if r.revision < policy.metadata.generation]
    return max((r.revision for r in earlier if reach(convert(r.data, type(policy.spec))) == 100), default=0)


def reach(spec: Spec) -> int:
    return 100 if spec.rollout is UNSET else 0 if spec.rollout.paused else spec.rollout.canary_percent


def _stopped(step: RolloutStatus, seen: Seen) -> RolloutStatus:
    """Once it has stopped the first reason stays; whoever fails later goes back, too."""
    node = min(seen.failing)
    others = f" and {len(seen.failing) - 1} more" if len(seen.failing) > 1 else ""
    why = step.stopped or f"{len(seen.failing)} of {seen.wanted} nodes fail: {node}{others}: {seen.failing[node]}"
    back = {*step.back, *seen.failing}
    if len(back) > MOST_BACK:
        return replace(step, stopped=why, reached=0, back=(), applied=UNSET)
    return replace(step, stopped=why, back=tuple(sorted(back)), applied=UNSET)


def _settled(step: RolloutStatus, rollout: Rollout, seen: Seen, wall: float) -> RolloutStatus:
    """A revision that every node obeys without a failure, for a while, is the stable one."""
    if seen.failing or seen.applied < seen.wanted:
        return replace(step, applied=UNSET)
    since = datetime.fromtimestamp(int(wall), UTC) if step.applied is UNSET else step.applied
    whole = step.reached == 100 and not rollout.paused
    if whole and wall - since.timestamp() >= WATCHED_S:
        return replace(step, applied=since, stable=step.revision)
    return replace(step, applied=since)


def progressing(policy: Policy, state: RolloutStatus, seen: Seen) -> Condition | None:
    """The condition that tells of a rollout; None where there is none to tell of."""
    rollout = policy.spec.rollout
    if rollout is UNSET:
        return None
    having = f"{seen.applied} of {seen.wanted} nodes obey revision {state.revision}"
    rest = f"the others stay with revision {state.stable}" if state.stable else "the others go without"
    if done(state):
        return _told(policy, "False", "Complete", f"revision {state.revision} is on all {seen.wanted} nodes")
    if state.stopped:
        went = f"{len(state.back)} nodes went back" if state.reached else "all nodes went back"
        hint = "correct the spec, or try again with `rollout resume`"
        return _told(policy, "False", "Stopped", f"{state.stopped}; {went}, {rest}; {hint}")
    if rollout.paused:
        return _told(policy, "False", "Paused", f"{having}, {state.reached} % are reached; {rest}")
    if seen.applied < seen.wanted:
        return _told(policy, "True", "Reaching", f"{having}; {rest}")
    if state.reached < 100:
        return _told(policy, "False", "Canary", f"{having}; {rest}; raise canaryPercent to go on")
    return _told(policy, "True", "Watching", f"{having}; watched for {WATCHED_S:g} s before it is the stable one")


def waiting(policy: Policy, revision: int, *, admitted: bool) -> Condition:
    """The condition while nodes obey an earlier revision because the fleet has not admitted the present one."""
    present = policy.metadata.generation
    if admitted:
        return _told(policy, "True", "Reaching", f"revision {present} is admitted; nodes have yet to hear of it")
    why = f"revision {present} is not admitted; nodes stay with revision {revision}"
    return _told(policy, "False", "NotAdmitted", why)


def _told(policy: Policy, status: str, reason: str, message: str) -> Condition:
    return Condition(
        type="Progressing",
        status=status,  # type: ignore[arg-type]
        reason=reason,
        message=message,
        observed_generation=policy.metadata.generation,
    )
