"""Who is evicted, in which order, until enough is freed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Candidate(NamedTuple):
    name: str
    frees: Mapping[str, int]  # what its end would free, by target
    priority: int | None = None  # spec.priority
    eviction_priority: int = 0  # of its annotation
    sub_priority: int | None = None  # of its label
    used: int | None = None  # None: not measured
    request: int = 0
    leaving: bool = False  # evicted already, and not gone yet


class Eviction(NamedTuple):
    victims: tuple[str, ...]
    freed: Mapping[str, int]  # with what is leaving


def by_satisfaction(pods: Iterable[Candidate]) -> list[Candidate]:
    """Best effort for CPU: lowest priority first, then who uses most of what it asked for."""

    def order(pod: Candidate) -> tuple[int, float]:
        return pod.priority or 0, -((pod.used or 0) / pod.request if pod.request > 0 else 0.0)

    return sorted(pods, key=order)


def by_usage(pods: Iterable[Candidate], *, by_request: bool = False) -> list[Candidate]:
    """Of every class: by annotation, priority, and label, then who uses most, or asked for most."""

    def order(pod: Candidate) -> tuple[int, int, int, int]:
        priority = pod.priority or 0
        sub = priority if pod.sub_priority is None else pod.sub_priority
        return pod.eviction_priority, priority, sub, -(pod.request if by_request else pod.used or 0)

    return sorted(pods, key=order)


def by_memory(pods: Iterable[Candidate]) -> list[Candidate]:
    """Best effort for memory: lowest priority first, then who uses most; who is not measured last, by name backwards.

    Priorities are compared only where both have one. With such a rule alone there is no order of three pods, so that
    pods without a priority go first here.
    """
    named = sorted(pods, key=lambda pod: pod.name, reverse=True)
    return sorted(named, key=lambda p: (p.priority is not None, p.priority or 0, p.used is None, -(p.used or 0)))


def evict(ordered: Iterable[Candidate], targets: Mapping[str, int]) -> Eviction:
    """Victims in order until every target is met; one may serve several, and who helps none is left alone. Of whom
    nothing is known goes, too, and counts for nothing.

    Who is leaving already counts when its turn comes, instead of another victim after it.
    """
    freed = dict.fromkeys(targets, 0)
    victims = []
    for pod in ordered:
        missing = [name for name, target in targets.items() if freed[name] < target]
        if not missing:
            break
        if pod.frees and not any(pod.frees.get(name, 0) > 0 for name in missing):
            continue
        for name in freed:
            freed[name] += pod.frees.get(name, 0)
        victims += [] if pod.leaving else [pod.name]
    return Eviction(tuple(victims), freed)
