"""cpusets nest: a parent of ours is widened to what its children ask for, then each child is kept within its parent."""

from __future__ import annotations

from j10ce.model.knob import ROOT, Setting, TargetId, render
from j10ce.plan.board import Board
from j10ce.plan.merge import LAPSED, cpus

KNOB = "cpuset.cpus"


def fit_placements(board: Board) -> None:
    if KNOB in board.knobs:
        sets = {t: cpus(board.value(t, KNOB)) for t in board.rights.top_down}
        _widen_parents(board, sets)
        _fit_children(board, sets)


def _widen_parents(board: Board, sets: dict[TargetId, frozenset[int]]) -> None:
    asked: dict[TargetId, frozenset[int]] = {}
    for target in reversed(board.rights.top_down):
        inside = frozenset[int]().union(*(asked.get(c, frozenset()) for c in board.children(target)))
        if sets[target] and not inside <= sets[target] and board.movable(target, KNOB):
            sets[target] |= inside
            board.move(target, KNOB, sets[target], f"widened to {render(KNOB, sets[target])} for those inside")
        # A set that nobody asks for any more follows its parent; it does not widen it.
        asked[target] = inside | (sets[target] if _explicit(board, target) else frozenset())


def _fit_children(board: Board, sets: dict[TargetId, frozenset[int]]) -> None:
    spelled_out = board.on_v1(KNOB)  # v1 has no "as the parent"
    usable = {ROOT: board.snap.node.cpus}
    for target in board.rights.top_down:
        up = board.snap.groups.parent(target) or ROOT
        above = usable.get(up, board.snap.node.cpus)
        usable[target] = sets[target] & above or above
        if not board.movable(target, KNOB):
            continue
        follows = spelled_out and Setting(up, KNOB) in board.verdicts and not _kept(board, target)
        wanted = above if follows else usable[target] if sets[target] or spelled_out else sets[target]
        usable[target] = wanted or above
        if wanted != sets[target] and (follows or sets[target] or Setting(target, KNOB) in board.verdicts):
            board.move(target, KNOB, wanted, f"set to {render(KNOB, wanted)}: within its parent{_because(board, up)}")


def _explicit(board: Board, target: TargetId) -> bool:
    verdict = board.verdicts.get(Setting(target, KNOB))
    return verdict is not None and not (verdict.winner and verdict.winner.owner == LAPSED)


def _kept(board: Board, target: TargetId) -> bool:
    """Somebody asks for it, or it goes back to a set that was not ours; one of ours began as its parent's was then."""
    return _explicit(board, target) or (Setting(target, KNOB) in board.verdicts and not board.snap.groups[target].owned)


def _because(board: Board, up: TargetId | None) -> str:
    """What somebody asks for of the nearest group above is why those inside have no more."""
    while up is not None:
        verdict = board.verdicts.get(Setting(up, KNOB))
        asked = verdict.winner if verdict is not None else None
        if asked is not None and asked.owner != LAPSED and cpus(asked.value):
            return f", {asked.owner}: {asked.reason}"
        up = board.snap.groups.parent(up)
    return ""
