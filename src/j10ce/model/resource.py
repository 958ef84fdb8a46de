"""Resource vectors: what a node has, what a workload asks for, what is promised."""

from __future__ import annotations

from collections.abc import Iterator
from operator import add, sub
from typing import Final, NamedTuple

from j10ce.model.quantity import BitsPerSecond, Bytes, Millicores

RESOURCES: Final = ("cpu", "memory", "network", "diskRead", "diskWrite")


class Resources(NamedTuple):
    """One amount per resource, each in its own unit. Zero means none of it."""

    cpu: Millicores = Millicores(0)
    memory: Bytes = Bytes(0)
    network: BitsPerSecond = BitsPerSecond(0)
    disk_read: int = 0  # bytes per second
    disk_write: int = 0  # bytes per second

    def plus(self, other: Resources) -> Resources:
        return Resources._make(map(add, self, other))

    def minus(self, other: Resources) -> Resources:
        """Never below zero."""
        return Resources._make(map(max, map(sub, self, other), NOTHING))

    def at_least(self, other: Resources) -> Resources:
        return Resources._make(map(max, self, other))

    def at_most(self, other: Resources) -> Resources:
        return Resources._make(map(min, self, other))

    def fits(self, room: Resources) -> bool:
        return (  # spelled out: asked for every claim of every workload
            self[0] <= room[0]
            and self[1] <= room[1]
            and self[2] <= room[2]
            and self[3] <= room[3]
            and self[4] <= room[4]
        )

    def dominant_share(self, whole: Resources) -> float:
        """The largest fraction of any one resource; a resource that the whole lacks counts only if asked for."""
        return max((a / w if w else float(a > 0)) for a, w in zip(self, whole, strict=True))

    def named(self) -> Iterator[tuple[str, int]]:
        """(public name, amount) of every resource that is not zero."""
        return ((name, amount) for name, amount in zip(RESOURCES, self, strict=True) if amount)

    def __str__(self) -> str:
        return ", ".join(f"{name} {spell(name, amount)}" for name, amount in self.named()) or "nothing"


NOTHING: Final = Resources()


def spell(resource: str, amount: float) -> str:
    """An amount as people read it: `500m`, `1.5Gi`, `100Mbit`."""
    match resource:
        case "cpu":
            return f"{int(amount)}m" if amount % 1000 else str(int(amount) // 1000)
        case "network":
            return _scaled(amount, 1000, ("bit", "kbit", "Mbit", "Gbit", "Tbit"))
        case _:
            return _scaled(amount, 1024, ("", "Ki", "Mi", "Gi", "Ti", "Pi"))


def _scaled(amount: float, base: int, suffixes: tuple[str, ...]) -> str:
    step = 0
    while amount >= base and step < len(suffixes) - 1:
        amount /= base
        step += 1
    return f"{amount:.4g}{suffixes[step]}"
