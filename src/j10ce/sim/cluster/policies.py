"""The scheduler of each policy: Kubernetes' filters and scores, and who decides about order and victims."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from j10ce.scheduler.config.arguments import QosArguments
from j10ce.scheduler.config.profiles import stock
from j10ce.scheduler.config.registry import qos
from j10ce.scheduler.cycle.profile import Profile, profile
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.sim.cluster.actors import SCHEDULER
from j10ce.sim.cluster.given.limits import PRIORITY
from j10ce.sim.cluster.given.scenario import Scenario

REPLACED: Final = ("PrioritySort", "DefaultPreemption")  # by QosAware


def scheduler_of(policy: str, scenario: Scenario) -> Scheduler:
    """A new one."""
    plain = stock(SCHEDULER)
    return Scheduler([plain if policy == PRIORITY else _by_slos(plain, arguments_of(policy, scenario))])


def arguments_of(policy: str, scenario: Scenario) -> QosArguments:
    """The name of a policy is its mode."""
    if policy == "classic":
        return replace(scenario.policies.classic, mode="classic")
    return replace(scenario.policies.lazy, mode="lazy")


def _by_slos(plain: Profile, arguments: QosArguments) -> Profile:
    kept = [plugin for plugin in plain.plugins if getattr(plugin, "name", "") not in REPLACED]
    weights = {scored.plugin.name: scored.weight for scored in plain.scores}
    return profile(SCHEDULER, [qos(arguments), *kept], weights)
