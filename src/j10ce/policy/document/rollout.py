"""Staged rollout of a policy: which nodes have its present revision, and what the agents' reports make of that.

A node obeys either the present revision or the stable one. The leader takes up a change, and says in the status how far
it has come; nodes go by that alone, so a change that no leader has seen reaches nobody. Cohorts below the share that
was reached have the present revision, and keep it when `canaryPercent` is lowered or the rollout is paused; where it
fails the rollout stops: nobody else takes it, nodes that failed go back to the stable one, those that hold it stay.
All state is in the objects: the spec says how far, the status says what happened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.model.kinds import Condition, Policy, PolicyRevision, PolicySpec, Rollout
from j10ce.model.parts.progress import RolloutStatus
from j10ce.model.schema import plain
from j10ce.model.text.words import counted
from j10ce.policy.lifetime import spec_of

WATCHED_S: Final = 30.0  # three reports: so long a revision has to hold on all nodes before it is the stable one
MOST_BACK: Final = 50  # when more nodes fail, all go back, not just those


class Stage(NamedTuple):
    """Who has the present revision."""

    share: int  # cohorts below it
    back: frozenset[str] = frozenset()
    stable: int | None = None  # what everyone else has; 0: nothing, None: nobody has looked yet
    first: str = ""  # has it although its cohort is not below the share

    @property
    def whole(self) -> bool:
        return self.share == 100 and not self.back

    def takes(self, node: str, cohort: int) -> bool:
        return (cohort < self.share or node == self.first) and node not in self.back


class Near(NamedTuple):
    """The node that is the first to have a revision as its share grows."""

    cohort: int
    node: str


class NodesSeen(NamedTuple):
    """What the nodes that should obey the present revision say; silent ones count only if they had taken it."""

    wanted: int = 0
    applied: int = 0
    failing: Mapping[str, str] = MappingProxyType({})  # node: why; also those that fell silent after taking it
    awaited: int = 0  # nodes that are silent, had not taken it, and have not been away for long
    near: Near | None = None  # of the nodes that report, where none of them should have it


def stage(policy: Policy) -> Stage:
    rollout, state = policy.spec.rollout, policy.status.rollout
    if rollout is UNSET:
        return Stage(100)
    stable = state.stable if state.revision else None
    if state.change != change(policy.spec):
        return Stage(0, stable=stable)
    return Stage(100) if done(state) else Stage(state.reached, frozenset(state.back), stable, state.first)


def change(spec: PolicySpec) -> str:
    """Names what a spec asks for, `rollout` aside."""
    content = msgspec.json.encode(plain(replace(spec, rollout=UNSET)), order="sorted")
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def done(state: RolloutStatus) -> bool:
    return 0 < state.stable == state.revision


def advance(
    policy: Policy, seen: NodesSeen, revisions: Iterable[PolicyRevision], wall: float, watched_s: float
) -> RolloutStatus:
    """Where the rollout stands after the latest reports. `revisions` are the policy's own.

    `watched_s`: for how long the leader itself has seen `applied` as it is; wall clocks differ, and are set.

    An edit resumes a rollout that stopped; an edit of `rollout` alone goes on with the same change.
    """
    rollout, state, generation = policy.spec.rollout, policy.status.rollout, policy.metadata.generation
    what = change(policy.spec)
    same, stable = state.change == what, state.stable if state.revision else whole_before(policy, revisions)
    if rollout is UNSET or (same and done(state)) or stable is None:
        return RolloutStatus(revision=generation, change=what, reached=100, stable=generation)
    step = RolloutStatus(revision=generation, change=what, stable=stable)
    if same:
        step = replace(step, reached=state.reached, first=state.first, back=state.back if rollout.paused else ())
    if same and state.revision == generation:
        step = replace(step, back=state.back, stopped=state.stopped, applied=state.applied)
    if not step.stopped and not rollout.paused:
        step = _reaching(step, rollout, seen)
    if rollout.stop_on_failures and seen.failing:
        return _stopped(step, seen)
    return step if step.stopped else _settled(step, rollout, seen, wall, watched_s)


def _reaching(step: RolloutStatus, rollout: Rollout, seen: NodesSeen) -> RolloutStatus:
    """A share is never less than it was, and never nobody, unless it is nothing."""
    share = max(step.reached, rollout.canary_percent)
    alone = share and seen.near is not None and seen.near.cohort >= share
    return replace(step, reached=share, first=seen.near.node if alone and seen.near else step.first)


def whole_before(policy: Policy, revisions: Iterable[PolicyRevision]) -> int | None:
    """The newest earlier revision that was meant for every node; 0: there is none.

    None where one that is not kept may have been: then the present spec is better than no floor at all.
    """
    present = policy.metadata.generation
    earlier = {r.revision: spec for r in revisions if r.revision < present and (spec := spec_of(policy, r)) is not None}
    whole = [revision for revision, spec in earlier.items() if reach(spec) == 100]
    return max(whole) if whole else 0 if len(earlier) == present - 1 else None


def reach(spec: PolicySpec) -> int:
    return 100 if spec.rollout is UNSET else 0 if spec.rollout.paused else spec.rollout.canary_percent


def _stopped(step: RolloutStatus, seen: NodesSeen) -> RolloutStatus:
    """Once it has stopped the first reason stays; whoever fails later goes back, too."""
    node = min(seen.failing)
    others = f" and {len(seen.failing) - 1} more" if len(seen.failing) > 1 else ""
    why = step.stopped or f"{len(seen.failing)} of {seen.wanted} nodes fail: {node}{others}: {seen.failing[node]}"
    back = {*step.back, *seen.failing}
    if len(back) > MOST_BACK:
        return replace(step, stopped=why, reached=0, back=(), first="", applied=UNSET)
    return replace(step, stopped=why, back=tuple(sorted(back)), applied=UNSET)


def _settled(step: RolloutStatus, rollout: Rollout, seen: NodesSeen, wall: float, watched_s: float) -> RolloutStatus:
    """A revision that every node obeys without a failure, for a while, is the stable one; silence is no consent."""
    if seen.failing or not _obeyed(seen):
        return replace(step, applied=UNSET)
    since = datetime.fromtimestamp(int(wall), UTC) if step.applied is UNSET else step.applied
    whole = step.reached == 100 and not rollout.paused
    if whole and step.applied is not UNSET and watched_s >= WATCHED_S:
        return replace(step, applied=since, stable=step.revision)
    return replace(step, applied=since)


def _obeyed(seen: NodesSeen) -> bool:
    """By everyone who should, and there is someone."""
    return 0 < seen.wanted == seen.applied and not seen.awaited


def progressing(policy: Policy, state: RolloutStatus, seen: NodesSeen) -> Condition | None:
    """The condition that tells of a rollout; None where there is none to tell of."""
    rollout = policy.spec.rollout
    if rollout is UNSET:
        return None
    having = f"{seen.applied} of {seen.wanted} nodes obey revision {state.revision}"
    having += f", {seen.awaited} not reporting" if seen.awaited else ""
    rest = f"the others stay with revision {state.stable}" if state.stable else "the others go without"
    if done(state):
        everywhere = "the one node" if seen.wanted == 1 else f"all {seen.wanted} nodes"
        return _progress(policy, "False", "Complete", f"revision {state.revision} is on {everywhere}")
    if state.stopped:
        went = f"{counted(len(state.back), 'node')} went back" if state.reached else "all nodes went back"
        hint = "correct the spec, or try again with `rollout resume`"
        return _progress(policy, "False", "Stopped", f"{state.stopped}; {went}, {rest}; {hint}")
    if rollout.paused:
        return _progress(policy, "False", "Paused", f"{having}, {state.reached} % are reached; {rest}")
    if not state.reached:
        return _progress(
            policy, "False", "NoCanary", f"canaryPercent is 0: nobody takes it; {rest}; raise canaryPercent"
        )
    if not _obeyed(seen):
        return _progress(policy, "True", "Reaching", f"{having}; {rest}")
    if state.reached < 100:
        return _progress(policy, "False", "Canary", f"{having}; {rest}; raise canaryPercent to go on")
    return _progress(policy, "True", "Watching", f"{having}; watched for {WATCHED_S:g} s before it is the stable one")


def waiting(policy: Policy, revision: int, *, admitted: bool) -> Condition:
    """The condition while nodes obey an earlier revision because the fleet has not admitted the present one."""
    present = policy.metadata.generation
    if admitted:
        return _progress(policy, "True", "Reaching", f"revision {present} is admitted; nodes have yet to hear of it")
    why = f"revision {present} is not admitted; nodes stay with revision {revision}"
    return _progress(policy, "False", "NotAdmitted", why)


def _progress(policy: Policy, status: str, reason: str, message: str) -> Condition:
    return Condition(
        type="Progressing",
        status=status,  # type: ignore[arg-type]
        reason=reason,
        message=message,
        observed_generation=policy.metadata.generation,
    )
