"""Best-effort work gets at most `day_share` of the machine between `from_hour` and `to_hour` (UTC)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from j10ce.model.kinds import Tier
from j10ce.model.knob import PERIOD_US, Setting
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot


class NightShift:
    name = "night-shift"

    class Config(Struct, frozen=True, forbid_unknown_fields=True):
        from_hour: int = 7
        to_hour: int = 19
        day_share: float = 0.25

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()

    def propose(self, snap: Snapshot, /) -> Iterable[Proposal]:
        """One cap per best-effort workload by day; at night nothing, so that the caps lapse."""
        hour = int(snap.wall // 3600) % 24
        if not self.config.from_hour <= hour < self.config.to_hour:
            return
        cpus = len(snap.node.cpus) * self.config.day_share
        reason = f"{hour}:00 UTC is day: best effort has {cpus:.2f} of {len(snap.node.cpus)} CPUs"
        for target, entitlement in snap.entitlements.items():
            if entitlement.chosen and entitlement.tier is Tier.BESTEFFORT:
                setting = Setting(target, "cpu.max")
                yield Proposal(setting, Bound.AT_MOST, cpus * PERIOD_US, self.name, Rank.ADVICE, reason)
