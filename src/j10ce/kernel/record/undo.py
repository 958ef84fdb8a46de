"""Giving everything back: values in reverse order, then our cgroups, then the controllers we enabled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from j10ce.kernel.backend import Disables, attempt
from j10ce.kernel.record.coupling import follows, foretold, note_side_effect
from j10ce.kernel.record.entry import CONTROLLERS, Enabled, Forgot, Made, Original, from_spelled
from j10ce.kernel.record.journal import Journal
from j10ce.kernel.routes import Routes
from j10ce.model.knob import Setting, TargetId, render
from j10ce.model.plan import Applied, Change, Enable, Gone, Refused, Remove, Result, Unchanged, ValueChange

OWNER: Final = "revert"


class Undo:
    """Giving back. Writes only where the present value is still ours, else it reports.

    `held`: settings that stay unless forced, and by whose word. `theirs`: those of which someone else has made
    something in between.
    """

    def __init__(
        self,
        routes: Routes,
        journal: Journal,
        *,
        busy: Callable[[TargetId], bool],
        force: bool = False,
        held: Mapping[Setting, str] | None = None,
    ) -> None:
        self._routes = routes
        self._journal = journal
        self._busy = busy
        self._force = force
        self._held = held or {}
        self.theirs: set[Setting] = set()

    def run(self) -> Iterator[tuple[Change, Result]]:
        """All of it. What stays in a cgroup that goes does not stay."""
        originals, left = dict(self._journal.originals), []
        for change, result in self._give_back(list(reversed(originals.values()))):
            if isinstance(change, ValueChange) and isinstance(result, Refused):
                left.append((change, result))
            else:
                yield change, result
        deepest_first = sorted(self._journal.made.values(), key=lambda m: m.at.path.count("/"), reverse=True)
        for made in deepest_first:
            yield self._remove(made)
        for stays, why in left:
            yield stays, Gone() if self._is_gone(originals[stays.setting]) else why
        for enabled in reversed(list(self._journal.enabled.values())):
            yield self._disable(enabled)

    def give_back(self, setting: Setting) -> Result:
        """One setting; it is not ours any more, unless that was refused."""
        original = self._journal.originals.get(setting)
        return Gone() if original is None else self._give_back_one(original)[1]

    def _give_back(self, todo: list[Original]) -> Iterator[tuple[Change, Result]]:
        """What is refused is tried again after the others: a parent may have to move first."""
        while todo:
            results = {o.setting: self._give_back_one(o) for o in todo}
            refused = [o for o in todo if isinstance(results[o.setting][1], Refused)]
            done = len(refused) == len(todo)
            yield from (r for r in results.values() if done or not isinstance(r[1], Refused))
            todo = [] if done else refused

    def _give_back_one(self, original: Original) -> tuple[Change, Result]:
        setting, result = original.setting, attempt(lambda: self._restore(original))
        change = ValueChange(setting, None, from_spelled(original.value), OWNER, "given back as it was")
        if not isinstance(result, Refused):
            self._journal.note(Forgot(*setting))
            if isinstance(result, Applied):
                note_side_effect(self._routes, self._journal, setting, OWNER)
        return change, result

    def _is_gone(self, original: Original) -> bool:
        """With its cgroup, in the meantime; then it is not ours any more."""
        gone = self._routes.identity(original.setting, original.at) != original.identity
        if gone:
            self._journal.note(Forgot(*original.setting))
        return gone

    def _restore(self, original: Original) -> Applied | Refused | Gone | Unchanged:
        setting, at = original.setting, original.at
        if self._busy(setting.target):
            return Refused("a slow write is still under way; revert again when it is done")
        if self._routes.identity(setting, at) != original.identity:
            return Gone()  # the cgroup is gone; what stands at its path is someone else's
        backend = self._routes.named(original.via, setting.knob)
        if backend is None:
            return Refused(f"{setting.knob} was set through {original.via}, which is not available here")
        present = backend.read(setting, at)
        if present is None:
            return Gone()
        if backend.save(setting, at) == original.text:
            return Unchanged(present)
        shown = render(setting.knob, present)
        if setting in self._held and not self._force:
            return Refused(f"held at {shown} {self._held[setting]}; left as it is (--force overrides)")
        ours = present in self._journal.ours(setting) or follows(self._routes, setting, at, present)
        if not ours and not self._force:
            self.theirs.add(setting)
            return Refused(f"someone else set it to {shown} since; left as it is (--force overrides)")
        self._journal.note(*foretold(setting, from_spelled(original.value), OWNER))
        return backend.restore(setting, original.text, at)

    def _remove(self, made: Made) -> tuple[Change, Result]:
        if self._busy(made.target):
            return Remove(made.target, "made by us"), Refused("a slow write is still under way")
        self._routes.know(made.target, made.at)
        builder = self._routes.builder(made.target)
        result = attempt(lambda: builder.remove(made.target)) if builder else Gone()
        if not isinstance(result, Refused):
            self._journal.note(Forgot(made.target))
        return Remove(made.target, "made by us"), result

    def _disable(self, enabled: Enabled) -> tuple[Change, Result]:
        tree, at = self._routes.tree, enabled.at
        controllers = frozenset(enabled.controllers)
        result: Result = Gone()
        if isinstance(tree, Disables) and tree.identity(at, enabled.controllers[0]) == enabled.identity:
            result = attempt(lambda: tree.disable(enabled.target, controllers))
        if not isinstance(result, Refused):
            self._journal.note(Forgot(enabled.target, CONTROLLERS))
        return Enable(enabled.target, controllers, "withdrawn again"), result
