"""Giving everything back where no agent runs: straight from the journal, under the agent's own lock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from j10ce.agent import views
from j10ce.agent.cache import Cache
from j10ce.agent.config import AgentConfig
from j10ce.agent.holds import held
from j10ce.agent.lock import Lock
from j10ce.agent.places import Places
from j10ce.errors import NotFound
from j10ce.host.files import Files
from j10ce.host.mounts import Hierarchies
from j10ce.kernel import owner
from j10ce.kernel.guard import Guard
from j10ce.kernel.journal import Journal
from j10ce.kernel.kernel import Kernel
from j10ce.observe import node as machine


def revert_offline(settings: AgentConfig, *, force: bool, wall: float) -> dict[str, Any]:
    """Every original value back; held settings stay unless forced. Raises Busy where an agent runs after all."""
    path = Path(settings.run_dir) / "journal"
    if not path.exists():
        raise NotFound(f"nothing to revert: no agent runs here and {path} does not exist")
    lock = Lock(Path(settings.run_dir))
    lock.take("revert")
    try:
        hierarchies = Hierarchies.discover()
        facts = machine.discover(settings.node_name, hierarchies, Files())
        owned = owner.choose(hierarchies, settings.tree, settings.top)
        cache = Cache(Path(settings.run_dir), Path(settings.state_dir))
        guard = Guard.of_this_process(float(facts.memory))
        kernel = Kernel(owned.tree, owned.backends, Journal.open(path, facts.boot_id), guard=guard)
        kernel.track(Places(hierarchies, owned).surviving(cache.workloads(), facts))
        frozen = frozenset(h.setting for h in held(cache.holds().items, wall))
        done = views.reverted(kernel.revert(force=force, held=frozen))
        kernel.close()
        owned.close()
        return done
    finally:
        lock.drop()
