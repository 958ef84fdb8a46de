"""A spike of pressure runs the ring at once instead of at its next tick."""

from __future__ import annotations

import asyncio
from typing import Final

from j10ce.agent.ring.ring import Report
from j10ce.agent.ring.runner import Shell
from j10ce.host.handles import Layout
from j10ce.model.snapshot import Groups
from j10ce.observe.sensors.psi import Triggers, worth_watching

SOON: Final = 0.5  # of a period: a tick that is nearer than this is waited for, or pressure that lasts would be a spin


class Pressure:
    """Runs on the event loop. What is watched follows the tree of the last report."""

    def __init__(self, shell: Shell, layout: Layout) -> None:
        self.triggers = Triggers()
        self._shell = shell
        self._layout = layout
        self._groups: Groups | None = None

    def start(self) -> None:
        self.triggers.follow(worth_watching(self._layout, ()))
        asyncio.get_running_loop().add_reader(self.triggers.fileno(), self.spiked)

    def follow(self, report: Report) -> None:
        groups = report.snap.groups
        if groups is not self._groups:
            self._groups = groups
            own = [
                g.path for t, g in groups.by_target.items() if g.owned and g.exists and t not in report.snap.workloads
            ]
            self.triggers.follow(worth_watching(self._layout, own))

    def spiked(self) -> None:
        """Whatever is pending; a run that has just been has seen it."""
        self.triggers.drain()
        last, now = self._shell.report, self._shell.clock.read().now
        if last is None or now - last.at.now >= SOON * self._shell.period_s:
            self._shell.wake.set()

    def close(self) -> None:
        self.triggers.close()
