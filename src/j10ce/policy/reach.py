"""How far a Hold reaches: what its namespace's people may hold, and who may cut floors. Pure."""

from __future__ import annotations

from typing import Final

from j10ce.model.kinds import Hold

SYSTEM_NAMESPACE: Final = "j10ce-system"  # its holds reach everywhere: who may make them runs the fleet
AGENTS: Final = "system:serviceaccount:j10ce-system:j10ce-agent"  # the account of all agents of a cluster
LONGEST_NAME: Final = 100


def home(target: str) -> str:
    """The namespace that a target belongs to; nodes and groups belong to nobody but the system."""
    kind, _, rest = target.partition("/")
    return rest.split("/")[0] if kind in ("workload", "part") else SYSTEM_NAMESPACE


def reaches(hold: Hold) -> bool:
    """Whether the target is one that a hold of this namespace may touch."""
    return hold.metadata.namespace in (home(hold.spec.target), SYSTEM_NAMESPACE)


def signature(user: str, given: str) -> str:
    """Who made a hold, by the word of the API server. Agents tell of holds that people made on their node."""
    return f"{given[:LONGEST_NAME]} ({AGENTS})" if user == AGENTS else user


def may_cut(hold: Hold) -> bool:
    """Whether it may break reservations. A hold that an agent's account wrote is its own node's business: there,
    its own record of the hold counts."""
    return hold.spec.breaks_reservation and not hold.spec.who.endswith(f"({AGENTS})")
