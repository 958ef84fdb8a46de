"""The tree as it would be after the plan: decided values, else those the kernel holds, else a fresh cgroup's."""

from __future__ import annotations

from collections.abc import Mapping

from j10ce.model.knob import KNOBS, Setting, TargetId, Value
from j10ce.model.plan import Verdict
from j10ce.model.snapshot import Snapshot
from j10ce.plan.merge import LAPSED, number
from j10ce.plan.rights import Rights


class Board:
    """Where the rules that span settings move values. Every move says why."""

    def __init__(
        self, snap: Snapshot, rights: Rights, verdicts: dict[Setting, Verdict], originals: Mapping[Setting, Value]
    ) -> None:
        self.snap = snap
        self.rights = rights
        self.verdicts = verdicts
        self.originals = originals
        self.knobs = {s.knob for s in verdicts}
        self.still: set[Setting] = set()  # decided, and not to be written
        self.notes: list[str] = []

    def children(self, target: TargetId) -> list[TargetId]:
        """Without those that the plan removes."""
        below = self.snap.groups.children.get(target, ())
        return [c for c in below if c not in self.rights.spent]

    def value(self, target: TargetId, knob: str) -> Value:
        s = Setting(target, knob)
        if (verdict := self.verdicts.get(s)) is not None:
            return verdict.value
        return self.snap.settings.get(s, KNOBS[knob].default)

    def on_v1(self, knob: str) -> bool:
        """Whether the kernel judges the knob by cgroup v1's rules."""
        support = self.snap.support.get(knob)
        via = support.via if support else ""
        return via == "cgroup1" or (via == "systemd" and self.snap.node.cgroup == "v1")

    def column(self, knob: str) -> dict[TargetId, float]:
        """A number for every target."""
        return {t: number(self.value(t, knob)) for t in self.rights.top_down}

    def movable(self, target: TargetId, knob: str) -> bool:
        """Ours, or left in a group of ours, and not frozen by a hold."""
        verdict = self.verdicts.get(Setting(target, knob))
        ours = target in self.rights.ours or (target in self.rights.owned and target not in self.rights.spent)
        return ours and not (verdict and verdict.held) and self.snap.supports(knob)

    def ends(self, s: Setting) -> bool:
        """Whether the setting goes back to what it was before us, and nothing stands in the way."""
        verdict, original = self.verdicts.get(s), self.originals.get(s)
        if verdict is None or original is None or verdict.held or verdict.clamps:
            return False
        return verdict.winner is not None and verdict.winner.owner == LAPSED and verdict.value == original

    def move(self, target: TargetId, knob: str, value: Value, why: str) -> None:
        s = Setting(target, knob)
        verdict = self.verdicts.get(s) or Verdict(s, value, None)
        self.verdicts[s] = verdict._replace(value=value, clamps=(*verdict.clamps, why), by=None)

    def leave(self, s: Setting, why: str) -> None:
        """Keep the verdict, write nothing."""
        verdict = self.verdicts[s]
        present = self.snap.settings.get(s, verdict.value)
        self.verdicts[s] = verdict._replace(value=present, clamps=(*verdict.clamps, why), by=None)
        self.still.add(s)
