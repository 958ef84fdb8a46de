"""`parameters`: kernel parameters of the machine, as the node's strategy says. What it does not say is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET, UnsetType

from j10ce.control.controller import Controller, Unconfigured
from j10ce.model.knob import NODE, Setting
from j10ce.model.parts.strategy import SysctlSection
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot

OF_MEMORY: Final = 10_000  # the factor is in 1/10000 of memory, as the kernel's own
AS_SAID: Final = "as the node's strategy says"
OFF: Final = "NO_"  # before the name of a feature that is to be off
MOST_FREE: Final = 20  # what is kept free is taken from everybody: no word of a strategy takes more than 5 %


class Parameters(Unconfigured):
    """Proposes on the node alone; whatever the strategy stops saying goes back to what it was."""

    name = "parameters"
    steady = True

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        said = snap.strategy.sysctls
        if said.min_free_kbytes_factor is not UNSET:
            total = snap.node.memory // 1024
            wanted, most = total * said.min_free_kbytes_factor // OF_MEMORY, total // MOST_FREE
            reason = f"{said.min_free_kbytes_factor}/10000 of {total} KiB of memory"
            reason += f", at most a {MOST_FREE}th of it" if wanted > most else ""
            yield _want("vm.min_free_kbytes", float(min(wanted, most)), reason)
        if said.watermark_scale_factor is not UNSET:
            yield _want("vm.watermark_scale_factor", float(said.watermark_scale_factor), AS_SAID)
        for knob, value in _of_vendors(said).items():
            if value is not UNSET:
                yield _want(knob, float(value), AS_SAID)
        for word in said.sched_features:
            name = word.removeprefix(OFF)
            yield _want("sched.features", float(name == word), AS_SAID, name)


def _of_vendors(said: SysctlSection) -> dict[str, float | UnsetType]:
    return {
        "kernel.sched_group_identity_enabled": said.sched_group_identity,
        "kernel.sched_idle_saver_wmark": said.sched_idle_saver_wmark,
        "mm.memcg_reaper.reap_background": said.memcg_reap_background,
        "mm.pagecache_limit.enabled": said.page_cache_limit,
    }


def _want(knob: str, value: float, reason: str, instance: str = "") -> Proposal:
    return Proposal(Setting(NODE, knob, instance), Bound.WANT, value, Parameters.name, Rank.POLICY, reason)


_: Controller = Parameters(Parameters.Config())
