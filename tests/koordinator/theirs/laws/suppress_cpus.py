"""The CPUs of best effort: how many, which, and all of them again when it is no longer held back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

Cpus = frozenset[int]
LEAST_CPUS: Final = 2
GROWTH_PERCENT: Final = 10


class CpuPlace(NamedTuple):
    cpu: int
    core: int
    socket: int = 0
    node: int = 0


class Pinned(NamedTuple):
    """CPUs that are not simply anybody's."""

    lse: Cpus = frozenset()  # nobody else's
    lsr: Cpus = frozenset()  # lent while they are idle
    reserved: Cpus = frozenset()  # of the node's reservation
    system: Cpus = frozenset()  # exclusively of class SYSTEM

    @property
    def closed(self) -> Cpus:
        """To best effort."""
        return self.lse | self.reserved | self.system


def suppressed_cpus(allowed_milli: int, places: Sequence[CpuPlace], pinned: Pinned, old: Cpus) -> Cpus | None:
    """The next CPUs of best effort; None: they stay as they are, because there are not as many.

    They shrink at once and grow by a tenth of the node at a time; CPUs of LSR give their proportion. A part that has
    fewer than its proportion gives none, and the other part's are all there is.
    """
    step = -(-len(places) * GROWTH_PERCENT // 100)
    wanted = min(max(-(-allowed_milli // 1000), LEAST_CPUS), len(old) + step)
    usable = [place for place in places if place.cpu not in pinned.closed]
    lsr = [place for place in usable if place.cpu in pinned.lsr]
    rest = [place for place in usable if place.cpu not in pinned.lsr]
    if not usable or wanted <= 0:
        return None
    from_lsr = wanted * len(lsr) // len(usable)
    return frozenset((*select(from_lsr, lsr), *select(wanted - from_lsr, rest))) or None


def recovered_cpus(everything: Cpus, pinned: Pinned) -> Cpus:
    """Of best effort that is not held back."""
    return everything - pinned.closed


def select(count: int, places: Iterable[CpuPlace]) -> list[int]:
    """So many CPUs, spread over NUMA nodes and sockets, hyperthreads of a core together; none where there are fewer."""
    buckets = _buckets(places)
    if count > sum(map(len, buckets)):
        return []
    pairs, at = _pairs(count, buckets)
    return pairs + _singles(count - len(pairs), buckets, at)


def _buckets(places: Iterable[CpuPlace]) -> list[list[CpuPlace]]:
    held = defaultdict[tuple[int, int], list[CpuPlace]](list)
    for place in places:
        held[place.node, place.socket].append(place)
    buckets = [sorted(bucket, key=lambda place: (place.core, place.cpu)) for bucket in held.values()]
    return sorted(buckets, key=lambda bucket: (-len(bucket), min(place.cpu for place in bucket)))


def _pairs(count: int, buckets: list[list[CpuPlace]]) -> tuple[list[int], int]:
    """Pairs, a bucket after the other, and the bucket to go on with; taken out of the buckets."""
    taken: list[int] = []
    before = -1
    while len(taken) > before:  # a round that finds no pair is the last
        before = len(taken)
        for at, bucket in enumerate(buckets):
            if count - len(taken) < 2:
                return taken, at
            taken += _pair(bucket)
    return taken, 0


def _pair(bucket: list[CpuPlace]) -> list[int]:
    for n in range(len(bucket) - 1):
        if bucket[n].core == bucket[n + 1].core:
            pair = [bucket[n].cpu, bucket[n + 1].cpu]
            del bucket[n : n + 2]
            return pair
    return []


def _singles(count: int, buckets: list[list[CpuPlace]], at: int) -> list[int]:
    taken: list[int] = []
    while len(taken) < count:
        bucket = buckets[at % len(buckets)]
        if bucket:
            taken.append(bucket.pop(0).cpu)
        at += 1
    return taken
