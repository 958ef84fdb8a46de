"""Which dialects a cluster's agents understand, and what a pod says in them."""

from __future__ import annotations

from typing import Any, Final

from j10ce.agent.dialects import DIALECTS, dialect
from j10ce.cli.client import Client
from j10ce.errors import Denied, NotFound
from j10ce.model.text.cells import dig
from j10ce.model.workload import Workload
from j10ce.policy.choose import Choice
from j10ce.policy.entitlement.layers import layers
from j10ce.policy.strategy import EffectiveStrategy

AGENTS: Final = "/apis/apps/v1/namespaces/j10ce-system/daemonsets/j10ce-qos-agent"
GENERATED: Final = "/apis/j10ce.io/v1alpha1/nodestrategies"
OPTION: Final = "--dialect="


def dialects_of(api: Client) -> list[str]:
    """By the options of the agents; of a caller who may not see those, by what a manager made of a configuration."""
    try:
        containers = dig(api.get(AGENTS), "spec.template.spec.containers") or []
        words = [word for container in containers for word in container.get("args") or ()]
        return [name for name in DIALECTS if f"{OPTION}{name}" in words]
    except (Denied, NotFound):
        return [name for name in DIALECTS if _made_objects(api, name)]


def _made_objects(api: Client, name: str) -> bool:
    try:
        return bool(api.get(GENERATED, labelSelector=f"j10ce.io/dialect={name}")["items"])
    except (Denied, NotFound):
        return False


def translated(pod: Workload, names: list[str]) -> Workload:
    return dialect(names)(pod)


def words_of(pod: Workload) -> list[str]:
    """Labels and annotations in a dialect's words, whoever understands them."""
    said = (*pod.labels, *pod.annotations)
    return sorted(key for key in said if any(key.split("/")[0].endswith(f"{name}.sh") for name in DIALECTS))


def spoken(pod: Workload, choice: Choice, strategy: EffectiveStrategy) -> dict[str, Any]:
    """What differs from the profile, who said so, and what is not heeded and why."""
    laid = layers(pod, choice, strategy)
    return {
        "overrides": [{"field": s.field, "by": s.object, "why": s.why} for s in laid.sources],
        "unheeded": [str(n) for n in laid.notes],
    }
