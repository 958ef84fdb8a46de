"""Giving everything back: values in reverse order, then our cgroups, then the controllers we enabled."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from j10ce.kernel.attempt import attempt
from j10ce.kernel.backend import Disables
from j10ce.kernel.coupling import note_side_effect
from j10ce.kernel.entry import CONTROLLERS, Enabled, Forgot, Made, Original, from_spelled
from j10ce.kernel.journal import Journal
from j10ce.kernel.routes import Routes
from j10ce.model.knob import Setting, TargetId, render
from j10ce.model.plan import Applied, Change, Enable, Gone, Refused, Remove, Result, Unchanged, ValueChange

OWNER: Final = "revert"


class Undo:
    """One revert. Writes only where the present value is still ours, else it reports."""

    def __init__(
        self,
        routes: Routes,
        journal: Journal,
        *,
        busy: Callable[[TargetId], bool],
        force: bool,
        held: Collection[Setting],
    ) -> None:
        self._routes = routes
        self._journal = journal
        self._busy = busy
        self._force = force
        self._held = held

    def run(self, only: Collection[TargetId] | None) -> Iterator[tuple[Change, Result]]:
        """All of it, or what concerns some targets."""
        originals = reversed(list(self._journal.originals.values()))
        yield from self._give_back([o for o in originals if only is None or o.target in only])
        deepest_first = sorted(self._journal.made.values(), key=lambda m: m.at.path.count("/"), reverse=True)
        for made in deepest_first:
            if only is None or made.target in only:
                yield self._remove(made)
        for enabled in reversed(list(self._journal.enabled.values())):
            if only is None or enabled.target in only:
                yield self._disable(enabled)

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

    def _restore(self, original: Original) -> Applied | Refused | Gone | Unchanged:
        setting, at = original.setting, original.at.place()
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
        if setting in self._held and not self._force:
            return Refused("held by an operator; release it, or revert with --force")
        if present not in self._journal.ours(setting) and not self._force:
            shown = render(setting.knob, present)
            return Refused(f"someone else set it to {shown} since; left as it is (--force overrides)")
        return backend.restore(setting, original.text, at)

    def _remove(self, made: Made) -> tuple[Change, Result]:
        if self._busy(made.target):
            return Remove(made.target, "made by us"), Refused("a slow write is still under way")
        self._routes.tree.know(made.target, made.at.place())
        result = attempt(lambda: self._routes.tree.remove(made.target))
        if not isinstance(result, Refused):
            self._journal.note(Forgot(made.target))
        return Remove(made.target, "made by us"), result

    def _disable(self, enabled: Enabled) -> tuple[Change, Result]:
        tree, at = self._routes.tree, enabled.at.place()
        controllers = frozenset(enabled.controllers)
        result: Result = Gone()
        if isinstance(tree, Disables) and tree.identity(at, enabled.controllers[0]) == enabled.identity:
            result = attempt(lambda: tree.disable(enabled.target, controllers))
        if not isinstance(result, Refused):
            self._journal.note(Forgot(enabled.target, CONTROLLERS))
        return Enable(enabled.target, controllers, "withdrawn again"), result
