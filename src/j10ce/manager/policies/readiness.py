"""One answer for tools that wait: the conditions Ready, Reconciling and Stalled, as kubectl wait, Flux and Argo CD read
them (kstatus). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from j10ce.model.kinds import Condition, MinimalReservationPolicyStatus, Policy, PolicyStatus
from j10ce.model.text.words import counted

# Conditions that something is wrong in when they have this status: it may pass without anyone's doing.
SHORT: Final = {"Degraded": "True", "Protected": "False", "Effective": "False"}


def readiness(policy: Policy, status: PolicyStatus) -> tuple[Condition, ...]:
    """Ready always; Reconciling and Stalled only while they are true."""
    conditions = {c.type: c for c in status.conditions}
    if stuck := _stuck(status, conditions):
        return _condition(policy, "Ready", "False", *stuck), _condition(policy, "Stalled", "True", *stuck)
    if busy := _busy(status, conditions):
        return _condition(policy, "Ready", "False", *busy), _condition(policy, "Reconciling", "True", *busy)
    if less := next(_less(status, conditions), None):
        return (_condition(policy, "Ready", "False", *less),)
    return (_condition(policy, "Ready", "True", "InForce", _nodes(status.nodes.applied, "obey") + " it"),)


def _nodes(n: int, do: str) -> str:
    return f"{counted(n, 'node')} {do}{'s' if n == 1 else ''}"


def _stuck(status: PolicyStatus, conditions: dict[str, Condition]) -> tuple[str, str] | None:
    """Nothing will come of it as it is written."""
    admitted = conditions.get("Admitted")
    if admitted is not None and admitted.status == "False":
        return admitted.reason, admitted.message
    return ("RolloutStopped", status.rollout.stopped) if status.rollout.stopped else None


def _busy(status: PolicyStatus, conditions: dict[str, Condition]) -> tuple[str, str] | None:
    progress, nodes = conditions.get("Progressing"), status.nodes
    if progress is not None and progress.status == "True":
        return progress.reason, progress.message
    pending = isinstance(status, MinimalReservationPolicyStatus) and status.phase == "Pending"
    if pending or nodes.applied < nodes.wanted - nodes.silent:
        silent = f", {nodes.silent} not reporting" if nodes.silent else ""
        return "Reaching", f"{nodes.applied} of {counted(nodes.wanted, 'node')} obey it{silent}"
    return None


def _less(status: PolicyStatus, conditions: dict[str, Condition]) -> Iterator[tuple[str, str]]:
    """It is in force, and does not give all that it says."""
    for name, wrong in SHORT.items():
        if name in conditions and conditions[name].status == wrong:
            yield conditions[name].reason, conditions[name].message
    if status.nodes.failing:
        first = status.nodes.named[0]
        yield "NodesFail", f"{_nodes(status.nodes.failing, 'fail')} with it; {first.node}: {first.why}"
    progress = conditions.get("Progressing")
    if progress is not None and progress.reason in ("Paused", "Canary"):
        yield progress.reason, progress.message


def _condition(policy: Policy, kind: str, status: str, reason: str, message: str) -> Condition:
    return Condition(
        type=kind,
        status=status,  # type: ignore[arg-type]
        reason=reason,
        message=message,
        observed_generation=policy.metadata.generation,
    )
