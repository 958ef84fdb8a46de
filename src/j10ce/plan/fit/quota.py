"""CPU settings fit each other: burst within quota, a child's quota within its parent's (v1), no weight while idle."""

from __future__ import annotations

import math

from j10ce.model.knob import TargetId, render
from j10ce.plan.board import Board


def fit_quotas(board: Board) -> None:
    if "cpu.max" in board.knobs and board.on_v1("cpu.max"):
        _fit_parents(board)
    if "cpu.max" in board.knobs or "cpu.max.burst" in board.knobs:
        _fit_bursts(board)
    if "cpu.weight" in board.knobs:
        _drop_idle_weights(board)


def _fit_parents(board: Board) -> None:
    """Lower the child: v2 would take the smaller of the two anyway. A held child lifts its parents instead."""
    quota = board.column("cpu.max")
    for target in reversed(board.rights.top_down):
        frozen = target not in board.rights.spent and not board.movable(target, "cpu.max")
        if frozen and math.isfinite(quota[target]):
            _lift(board, quota, target)
    bound: dict[TargetId | None, float] = {}
    for target in board.rights.top_down:
        above = bound.get(board.snap.groups.parent(target), math.inf)
        if math.isfinite(quota[target]) and quota[target] > above and board.movable(target, "cpu.max"):
            quota[target] = above
            board.move(
                target, "cpu.max", above, f"lowered to {render('cpu.max', above)}: its parent on cgroup v1 has no more"
            )
        bound[target] = quota[target] if math.isfinite(quota[target]) else above


def _lift(board: Board, quota: dict[TargetId, float], child: TargetId) -> None:
    need = quota[child]
    for up in board.snap.groups.ancestors(child):
        if quota.get(up, math.inf) < need and board.movable(up, "cpu.max"):
            quota[up] = need
            board.move(up, "cpu.max", need, f"raised to {render('cpu.max', need)}: {child} is not ours to lower")


def _fit_bursts(board: Board) -> None:
    touched = {s.target for s in board.verdicts if s.knob in ("cpu.max", "cpu.max.burst")}
    for target in sorted(touched):
        quota, burst = board.value(target, "cpu.max"), board.value(target, "cpu.max.burst")
        if not (isinstance(quota, int | float) and isinstance(burst, int | float)) or burst <= quota:
            continue
        if board.movable(target, "cpu.max.burst"):
            board.move(
                target, "cpu.max.burst", quota, f"lowered to {render('cpu.max.burst', quota)}: never above cpu.max"
            )


def _drop_idle_weights(board: Board) -> None:
    for s in [s for s in board.verdicts if s.knob == "cpu.weight"]:
        if board.ends(s) and s.target not in board.rights.ours:
            continue  # what it had as an idle group comes back with cpu.idle
        if board.value(s.target, "cpu.idle") == 1.0:
            board.leave(s, "not written: the kernel gives an idle group no weight")
