"""Changing the tree itself: make, enable, join, remove, each on record before it happens."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import assert_never

from j10ce.errors import QosError
from j10ce.kernel.backend import Disables
from j10ce.kernel.process import alive, pinned, proof
from j10ce.kernel.record.entry import Enabled, Forgot, Joined, Made
from j10ce.kernel.record.journal import Journal
from j10ce.kernel.routes import Routes
from j10ce.model.knob import TargetId
from j10ce.model.plan import Applied, Enable, Gone, Join, Make, Refused, Remove, Result, Structural, Unchanged
from j10ce.model.workload import Handle


class Structure:
    """Touches our own groups, and those that are `managed`: a tracked workload, or a group above one."""

    def __init__(self, routes: Routes, journal: Journal, managed: Callable[[TargetId], bool]) -> None:
        self._routes = routes
        self._tree = routes.tree
        self._journal = journal
        self._managed = managed

    def change(self, change: Structural) -> Result:
        try:
            match change:
                case Make():
                    return self._make(change)
                case Enable():
                    return self._enable(change)
                case Join():
                    return self._join(change)
                case Remove():
                    return self._remove(change)
                case _ as never:
                    assert_never(never)
        except OSError as e:
            return Refused(f"the journal cannot take {change.target}: {e.strerror}; nothing was changed")
        except QosError as e:
            return Refused(str(e))

    def _make(self, change: Make) -> Result:
        known, builder = self._routes.place(change.target), self._routes.builder(change.target)
        at = known if known and known.path == change.path else Handle(change.path)
        if builder is None:
            return Refused(f"nobody makes {change.target}")
        in_tree = self._routes.in_tree(change.target)
        if in_tree and not self._tree.owns(at):
            return Refused(f"{at.path!r} is not below our top group; only our own cgroups are made")
        if change.target not in self._journal.made:
            self._journal.add(Made(change.target, at))
        made = builder.make(change.target, at)
        if isinstance(made, Refused) and not in_tree:
            self._journal.note(Forgot(change.target))  # what stands there, if anything, is not ours to remove
        return made

    def _enable(self, change: Enable) -> Result:
        at = self._tree.place(change.target)
        identity = self._tree.identity(at, min(change.controllers)) if at else None
        if at is None or identity is None:
            return Gone()
        if at.path and not self._tree.owns(at) and not self._managed(change.target):
            return Refused(f"{at.path} is not managed: neither ours nor above a workload")
        missing = change.controllers
        if isinstance(self._tree, Disables):
            missing = change.controllers - (self._tree.enabled(change.target) or frozenset())
            if not missing:
                return Unchanged(" ".join(sorted(change.controllers)))
            self._journal.add(Enabled(change.target, at, identity, sorted(missing)))
        return self._tree.enable(change.target, missing)

    def _join(self, change: Join) -> Result:
        with pinned(change.pid) if change.proof else nullcontext(None) as handle:
            if change.proof and (handle is None or not alive(handle) or proof(change.pid) != change.proof):
                return Gone()
            self._journal.note(Joined(change.target, change.pid))  # for the record: no revert moves a process
            result = self._tree.join(change.target, change.pid)
            return Gone() if handle is not None and not alive(handle) else result

    def _remove(self, change: Remove) -> Result:
        builder, in_tree = self._routes.builder(change.target), self._routes.in_tree(change.target)
        at = self._tree.place(change.target) if in_tree else None
        if at is not None and not self._tree.owns(at):
            return Refused(f"{at.path} is not ours; only our own cgroups are removed")
        if builder is None or (not in_tree and change.target not in self._journal.made):
            return Refused(f"{change.target} is not ours; only what we made is removed")
        result = builder.remove(change.target)
        if isinstance(result, Applied | Gone):
            self._journal.note(Forgot(change.target))
        return result
