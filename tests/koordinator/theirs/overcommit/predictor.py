"""How much of what prod asked for it is not expected to use: the smaller of two guesses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

SAFETY_PERCENT: Final = 10
COLD_START_S: Final = 24 * 3600


class PodPeak(NamedTuple):
    request: int
    peak: int | None  # predicted, without safety; None: there is no model of it
    age_s: float = COLD_START_S
    terminating: bool = False


def safe(peak: int) -> int:
    return peak + peak * SAFETY_PERCENT // 100


def by_pods(allocatable: int, pods: Iterable[PodPeak], cold_start_s: float = COLD_START_S) -> int:
    """Pod by pod what it asked for beyond its peak, within what all peaks leave of the node.

    A pod that is young, or unknown, is expected to use what it asked for; one that ends gives nothing.
    """
    listed = [pod for pod in pods if not pod.terminating]
    peaks = [_expected(pod, cold_start_s) for pod in listed]
    unused = sum(max(pod.request - peak, 0) for pod, peak in zip(listed, peaks, strict=True))
    return max(0, min(unused, allocatable - sum(peaks)))


def _expected(pod: PodPeak, cold_start_s: float) -> int:
    return pod.request if pod.peak is None or pod.age_s < cold_start_s else safe(pod.peak)


def by_priority(allocatable: int, prod_request: int, system_peak: int, class_peaks: Iterable[int]) -> int:
    """What prod asked for beyond the peaks of the system and of the classes prod and none, within what they leave."""
    expected = safe(system_peak + sum(class_peaks))
    return min(max(prod_request - expected, 0), max(allocatable - expected, 0))


def reclaimable(*guesses: int) -> int:
    return min(guesses, default=0)
