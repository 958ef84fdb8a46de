"""Giving everything back without a running agent: the journal of this boot is all that it takes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

from j10ce.agent import config
from j10ce.agent.cache import Cache
from j10ce.agent.config import AgentConfig
from j10ce.agent.plugins.inline import backends
from j10ce.agent.ring.holds import held, holders, in_force
from j10ce.agent.socket import answers
from j10ce.daemon.clock import SystemClock
from j10ce.daemon.lock import Lock
from j10ce.host.files import Files
from j10ce.host.mounts import Hierarchies
from j10ce.kernel import owner
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.observe.sensors.node import discover


class Folders(Protocol):
    """Where the agent keeps its files."""

    @property
    def run(self) -> Path: ...
    @property
    def config(self) -> Path: ...


def revert_offline(folders: Folders, *, force: bool) -> dict[str, Any]:
    """As `POST /v1/revert` answers. Raises Busy while an agent runs, Corrupt when the journal is damaged.

    `force` also gives back what is held, and what can be read of a damaged journal.
    """
    settings = config.load(folders.config, {**os.environ, "J10CE_RUN_DIR": str(folders.run)})
    lock = Lock(folders.run)
    lock.take("revert")
    try:
        return _revert(settings, force=force)
    finally:
        lock.drop()


def _revert(settings: AgentConfig, *, force: bool) -> dict[str, Any]:
    hierarchies = Hierarchies.discover()
    node = discover(settings.node_name, hierarchies, Files())
    owned = owner.choose(hierarchies, settings.tree, settings.top)
    cache = Cache(Path(settings.run_dir), Path(settings.state_dir))
    journal = Journal.open(Path(settings.run_dir) / "journal", node.boot_id, salvage=force)
    kernel = Kernel(owned.tree, (*owned.backends, *backends(settings.disabled)), journal)
    local, document = cache.holds(), cache.document()
    ordered = document.holds if document is not None and document.node == node.name else ()
    kept = held(in_force(ordered, local.items, local.released), SystemClock().read().wall)
    try:
        return answers.reverted(kernel.revert(force=force, held=holders(kept)))
    finally:
        kernel.close()
        cache.forget_run()
