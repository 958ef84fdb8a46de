"""Sums and metrics as the rules write them, recomputed from every stamp: slow, and independent of what it checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class Stamps(NamedTuple):
    """One incarnation. `current`: it holds its slot. `phase`: of its pod, if it is the one that is asked about."""

    slot: int
    created: float
    bind_start: float | None = None
    run_start: float | None = None
    end: float | None = None
    current: bool = True
    succeeded: bool = False


class Expected(NamedTuple):
    effective: float
    discarded: float
    waiting: float
    binding: float
    incarnations: int
    running: int
    pending: int
    qos: float
    overhead: float
    metric: float


def waiting(it: Stamps, now: float) -> float:
    return next((stamp for stamp in (it.bind_start, it.run_start, it.end) if stamp is not None), now) - it.created


def binding(it: Stamps, now: float) -> float:
    return 0.0 if it.bind_start is None else (now if it.run_start is None else it.run_start) - it.bind_start


def running(it: Stamps, now: float) -> float:
    return 0.0 if it.run_start is None else (now if it.end is None else it.end) - it.run_start


def expected(
    approach: str, all_of_it: Sequence[Stamps], about: Stamps, phase: str, slo: float, slots: int, now: float
) -> Expected:
    summed = [it for it in all_of_it if approach != "independent" or it.slot == about.slot]
    held = [it for it in all_of_it if it.current]
    n_r, n_p = sum(it.run_start is not None for it in held), sum(it.run_start is None for it in held)
    effective, discarded = gained(approach, summed, about, phase, slots, now)
    w, b = sum(waiting(it, now) for it in summed), sum(binding(it, now) for it in summed)
    total = effective + discarded + w + b
    qos = effective / total if total else 0.0
    h = b / len(summed) if b else 2.4
    m = metric(approach, effective, discarded, w, b, h, slo, (n_r, n_p, n_r - (phase == "Running"), slots))
    return Expected(effective, discarded, w, b, len(summed), n_r, n_p, qos, h, m)


def gained(
    approach: str, summed: Sequence[Stamps], about: Stamps, phase: str, slots: int, now: float
) -> tuple[float, float]:
    ran = sum(running(it, now) for it in summed)
    if approach == "concurrent":
        return swept(summed, slots, now)
    if approach != "aggregate":
        return ran, 0.0
    lost = sum(running(it, now) for it in summed if it.end is not None and not it.succeeded)
    lost += running(about, now) if phase == "Running" else 0.0
    return ran - lost, lost


def swept(summed: Sequence[Stamps], slots: int, now: float) -> tuple[float, float]:
    spans = [(it.run_start, now if it.end is None else it.end) for it in summed if it.run_start is not None]
    edges = sorted({edge for span in spans for edge in span})
    effective = discarded = 0.0
    for a, b in pairwise(edges):
        online = sum(start <= a and b <= stop for start, stop in spans)
        if online >= slots:
            effective += online * (b - a)
        else:
            discarded += online * (b - a)
    return effective, discarded


def metric(
    approach: str, e: float, d: float, w: float, b: float, h: float, s: float, pods: tuple[int, int, int, int]
) -> float:
    n_r, n_p, k, slots = pods
    t = e + d + w + b
    lasts = e / s if s else (math.inf if e > 0 else 0.0)
    qos = e / t if t else 0.0
    if not s:
        return lasts
    if approach == "independent":
        return lasts - (e + w + b) - h
    if approach == "concurrent":
        return lasts - t - h if t and qos < s else lasts / slots - t / slots
    if qos == s:
        return 0.0
    if qos < s:
        return lasts - t - h
    if (n_r + n_p == 0 and k == 0) or (n_r + n_p and k / (n_r + n_p) >= s):
        return math.inf
    return (e - s * t) / ((n_r + n_p) * s - k) - h
