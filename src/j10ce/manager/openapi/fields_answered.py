"""What every field means of what is answered and not stored, and of single rows of a node's report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ANSWERED: Final[Mapping[str, Mapping[str, str]]] = {
    "NodeDocument": {
        "": "All that the agent of a node obeys.",
        "node": "Whose it is.",
        "hash": "Names everything but the node's name.",
        "format": "What the document was written in; an agent reads the present one and the one before.",
        "spec": "What the operator wants of the node.",
        "units": "Of each policy whose units the fleet has placed: how many are held here.",
        "profiles": "The QoSProfiles to obey, as they are obeyed here.",
        "policies": "The MinimalReservationPolicies to obey, as they are obeyed here.",
        "strategies": "The NodeStrategies that select the node; what it obeys is all of them, merged.",
        "holds": "The Holds that concern the node.",
    },
    "InterferenceReport": {
        "": "A workload that suffers on a node, another that is why, and what is done about it.",
        "victim": "Who suffers: its namespace and name.",
        "antagonist": "Who is why, likewise.",
        "resource": "What they fight for: cpu, memory, io, cache.",
        "suffering": "How much it suffers, and what is usual of it.",
        "evidence": "Why the other one is thought to be the reason.",
        "correlation": "Of the ranks of suffering and use. 0: it holds most of the resource all the time.",
        "samples": "How many were compared.",
        "action": "What is done about it.",
    },
    "Placement": {
        "": "Where a workload belongs, and why.",
        "metadata": "Of the workload.",
        "node": "Empty: none fits.",
        "reservation": "The policy that holds its floor there; empty in a dry run.",
        "expires": "When the reservation ends if the workload does not come.",
        "stands_on": "The policy whose unit the workload takes; empty: room of its own.",
        "floor": "What is held, by resource.",
        "message": "The verdict in words.",
        "refused": "How many nodes each filter turned down.",
        "nodes": "How each node did, best first.",
        "dry_run": "Nothing was held.",
    },
    "NodeVerdict": {
        "": "How one node did: turned down by filters, or scored.",
        "node": "Its name.",
        "fits": "Whether the workload may run there.",
        "score": "0 to 100, the sum of its scores.",
        "reason": "Why not.",
        "refused_by": "The filters that turned it down.",
        "scores": "What each scorer gave.",
    },
    "Score": {
        "": "What one scorer gave.",
        "name": "Of the scorer.",
        "points": "So many.",
        "of": "The most that it gives.",
        "why": "In words.",
    },
    "NodeCredential": {
        "": "The token of a node.",
        "node": "For whom it speaks.",
        "token": "Shown once, when it is issued.",
        "expires": "Until when it counts; for ever when not set.",
    },
}
