"""What is in force on a running agent, for questions about what is not: the same book, tree and controllers."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from msgspec.structs import replace

from j10ce.agent.ring.contained import Contained
from j10ce.agent.ring.ring import Agent, Report
from j10ce.agent.ring.what_if import Present
from j10ce.control.builtin import BUILTIN
from j10ce.control.controller import Controller
from j10ce.model.plan import Proposal
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Handle


def in_force(agent: Agent, report: Report) -> Present:
    """On the ring: of a running agent. What only plugins say stands as they said it last."""
    kernel, at = agent.kernel, report.at
    tree = kernel.tree
    return Present(
        agent.document,
        replace(report.snap, settings=kernel.settings),
        report.resolution.ledger,
        agent.beside(at),
        kernel.owed,
        report.held,
        [_copied(guard) for guard in agent.guards],
        kernel.quantise,
        tree.path_for,
        lambda path: tree.owns(Handle(path)),
    )


class Said:
    """A controller that cannot be asked about what is not: its last word stands."""

    def __init__(self, guard: Contained) -> None:
        self.name = guard.name
        self._last = guard.last

    def propose(self, snap: Snapshot, /) -> Iterable[Proposal]:
        return self._last


def _copied(guard: Contained) -> Controller:
    """With all that it remembers; its configuration is a value."""
    controller = guard.controller
    if type(controller) not in BUILTIN.values():
        return Said(guard)
    config = controller.config  # type: ignore[attr-defined]
    return copy.deepcopy(controller, {id(config): config})
