"""What a new status of a policy means to whoever looks after it: turns, not numbers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from j10ce.model.kinds import Condition, MinimalReservationPolicy, MinimalReservationPolicyStatus, Policy, PolicyStatus
from j10ce.model.stored import Happening
from j10ce.policy.document.rollout import done

# Conditions that something is wrong in when they have this status; events carry their reason.
WRONG: Final = {"Admitted": "False", "Degraded": "True", "Protected": "False", "Effective": "False"}


Tell: TypeAlias = Callable[[Policy, Happening], None]


def ignore(policy: Policy, happening: Happening) -> None:
    """For where nobody listens."""


def happenings(policy: Policy, status: PolicyStatus) -> Iterator[Happening]:
    """What has turned between the status that `policy` has and `status`."""
    before = policy.status
    yield from _conditions(before.conditions, status.conditions)
    if isinstance(policy, MinimalReservationPolicy) and isinstance(status, MinimalReservationPolicyStatus):
        yield from _phase(policy, status)
    now, was = status.rollout, before.rollout
    if now.stopped and now.stopped != was.stopped:
        yield Happening("Warning", "RolloutStopped", f"revision {now.revision}: {now.stopped}")
    elif done(now) and was.revision and not done(was):
        yield Happening("Normal", "RolloutComplete", f"revision {now.revision} is in force on every node")


def _conditions(before: Iterable[Condition], after: Iterable[Condition]) -> Iterator[Happening]:
    """A generation that is refused anew is an event anew; other numbers in the same words are not."""
    was = {c.type: (c.status, c.reason, c.observed_generation if c.type == "Admitted" else 0) for c in before}
    for c in after:
        wrong = WRONG.get(c.type) == c.status
        generation = c.observed_generation if c.type == "Admitted" else 0
        if wrong and was.get(c.type) != (c.status, c.reason, generation):
            yield Happening("Warning", _reason(c), c.message)


def _reason(c: Condition) -> str:
    return {"Admitted": "Refused", "Degraded": c.reason, "Protected": "Unprotected", "Effective": "Ineffective"}[c.type]


def _phase(policy: MinimalReservationPolicy, status: MinimalReservationPolicyStatus) -> Iterator[Happening]:
    if status.phase == policy.status.phase:
        return
    units = status.units
    numbers = (
        f"{units.placed} of {units.wanted} units placed, {units.used} in use" if units.wanted else "it holds no units"
    )
    match status.phase:
        case "Degraded":
            yield Happening("Warning", "Degraded", f"was {policy.status.phase}; {numbers}")
        case "Expired":
            yield Happening("Normal", "Expired", f"its ttl of {policy.spec.ttl} is over; its capacity is free")
        case phase:
            yield Happening("Normal", phase, f"was {policy.status.phase}; {numbers}")
