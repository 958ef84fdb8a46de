"""`parameters`: kernel parameters of the machine, as the node's strategy says. What it does not say is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from j10ce.control.controller import Controller, Unconfigured
from j10ce.model.knob import NODE, Setting
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot

OF_MEMORY: Final = 10_000  # the factor is in 1/10000 of memory, as the kernel's own
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
            yield _want("vm.watermark_scale_factor", float(said.watermark_scale_factor), "as the node's strategy says")


def _want(knob: str, value: float, reason: str) -> Proposal:
    return Proposal(Setting(NODE, knob), Bound.WANT, value, Parameters.name, Rank.POLICY, reason)


_: Controller = Parameters(Parameters.Config())
