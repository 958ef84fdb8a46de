"""What decides, made of a configuration: profiles with their plugins, the core, and the accounts that are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog

from j10ce.daemon.config_file import plain_of
from j10ce.errors import Denied, Invalid
from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.config.sections import API_VERSIONS, KIND
from j10ce.scheduler.config.settings import SchedulerSettings, configured
from j10ce.scheduler.cycle.profile import PluginFault
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.qos.following import QosFollower
from j10ce.scheduler.process.installed import installed
from j10ce.scheduler.process.options import NAME

log = structlog.get_logger()
MOST_FAULTS: Final = 1024  # that are remembered as said
OURS: Final = ("QosAware", "Reservation", "LoadAware")
INSTEAD: Final = ("PrioritySort", "DefaultPreemption")  # of these, pods are sorted and moved by their SLOs
DEFAULT: Final[dict[str, Any]] = {
    "apiVersion": API_VERSIONS[0],
    "kind": KIND,
    "profiles": [
        {
            "schedulerName": NAME,
            "plugins": {
                "multiPoint": {
                    "enabled": [{"name": name} for name in OURS],
                    "disabled": [{"name": name} for name in INSTEAD],
                }
            },
        }
    ],
}


class LoggedFaults:
    """Faults of plugins, each once: one that fails about a pod may do so at every step."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def __call__(self, fault: PluginFault) -> None:
        key = (fault.call, fault.about)
        if key in self._said:
            return
        if len(self._said) >= MOST_FAULTS:
            self._said.clear()
        self._said.add(key)
        log.error("plugin.fail", call=fault.call, about=fault.about, exc_info=fault.error)


class Composed(NamedTuple):
    """`accounts` are empty for ever where no profile has QosAware."""

    scheduler: Scheduler
    accounts: Accounts
    settings: SchedulerSettings


def composed(file: Path | None) -> Composed:
    """Raises Invalid, with everything that is wrong with the file, and Denied for one that cannot be read."""
    others = installed()
    if others.findings:
        raise Invalid(others.findings, "plugin")
    settings = configured(DEFAULT if file is None else _read(file), others.plugins)
    plugins = (plugin for profile in settings.profiles for plugin in profile.plugins)
    followers = (plugin.accounts for plugin in plugins if isinstance(plugin, QosFollower))
    scheduler = Scheduler(settings.profiles, faulted=LoggedFaults(), backoff=settings.backoff)
    return Composed(scheduler, next(followers, None) or Accounts(), settings)


def _read(file: Path) -> object:
    try:
        return plain_of(file.read_bytes(), str(file))
    except OSError as e:
        raise Denied(f"cannot read {file} (--config): {e.strerror}") from None
