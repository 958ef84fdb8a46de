"""The agent's own cgroup: it protects itself, so that it can protect others."""

from __future__ import annotations

import os

import structlog

from j10ce.kernel.backend import Tree
from j10ce.kernel.kernel import Kernel
from j10ce.model import knob
from j10ce.model.plan import Join, Make, Plan

log = structlog.get_logger()


class OwnCgroup:
    """Below our top group, on plain directories only: under systemd the agent's unit has its own values.

    Its weight and floor are proposed by the controller `own` like everyone else's.
    """

    def __init__(self, tree: Tree, *, wanted: bool = True) -> None:
        """Not `wanted`: something else looks after the agent, such as the kubelet after a pod."""
        self.top = tree.path_for("", "", "").path
        self.path = f"{self.top}/agent" if wanted and tree.name == "plain" and os.geteuid() == 0 else ""
        self.target = knob.group(self.path)

    def enter(self, kernel: Kernel) -> None:
        if self.path:
            why = "the agent protects itself"
            made = (Make(knob.group(self.top), self.top, why), Make(self.target, self.path, why))
            self._apply(kernel, Plan((*made, Join(self.target, os.getpid(), why))))

    def leave(self, kernel: Kernel) -> None:
        """Before a revert, which removes cgroups that are empty."""
        if self.path:
            self._apply(kernel, Plan((Join(knob.ROOT, os.getpid(), "the agent leaves its cgroup"),)))

    def _apply(self, kernel: Kernel, plan: Plan) -> None:
        for change, result in kernel.apply(plan).refused():
            log.warning("own.refused", change=type(change).__name__.lower(), why=result.reason)
