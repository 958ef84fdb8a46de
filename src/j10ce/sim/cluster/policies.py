"""The scheduler of each policy: Kubernetes' filters and scores, and who decides about order and victims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from j10ce.model.quantity import Duration
from j10ce.scheduler.config.arguments import QosArguments
from j10ce.scheduler.config.profiles import stock
from j10ce.scheduler.cycle.profile import Profile, profile
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.qos.aware import QosAware
from j10ce.scheduler.plugins.qos.settings import QosSettings
from j10ce.sim.cluster.actors import SCHEDULER
from j10ce.sim.cluster.given.limits import PRIORITY
from j10ce.sim.cluster.given.scenario import Scenario

REPLACED: Final = ("PrioritySort", "DefaultPreemption")  # by QosAware
FIELDS: Final[Mapping[str, str]] = {
    "slo": "slo",
    "safety_margin": "safety_margin_s",
    "minimum_running_time": "minimum_running_s",
    "acceptable_preemption_overhead": "acceptable_overhead",
    "periods": "periods_s",
    "margin": "margin_s",
    "hysteresis": "hysteresis_s",
    "budget": "budget",
    "admission": "admission",
}


def scheduler_of(policy: str, scenario: Scenario) -> Scheduler:
    """A new one."""
    plain = stock(SCHEDULER)
    return Scheduler([plain if policy == PRIORITY else _by_slos(plain, policy, scenario)])


def _by_slos(plain: Profile, mode: str, scenario: Scenario) -> Profile:
    arguments: QosArguments = getattr(scenario.policies, mode)
    settings = settings_of(arguments)._replace(mode="classic" if mode == "classic" else "lazy")
    kept = [plugin for plugin in plain.plugins if getattr(plugin, "name", "") not in REPLACED]
    weights = {scored.plugin.name: scored.weight for scored in plain.scores}
    return profile(SCHEDULER, [QosAware(settings), *kept], weights)


def settings_of(arguments: QosArguments) -> QosSettings:
    """What is not said is as QosAware has it."""
    usual = QosArguments()
    said = {name: getattr(arguments, name) for name in FIELDS if getattr(arguments, name) != getattr(usual, name)}
    return QosSettings()._replace(**{FIELDS[name]: _plain(value) for name, value in said.items()})


def _plain(value: Any) -> Any:
    """Durations as seconds."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.seconds if isinstance(value, Duration) else value
