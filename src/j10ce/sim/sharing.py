"""Who gets how much CPU time: what the kernel's fair class comes to over a second.

Siblings share by weight, level by level. Nobody gets more than it wants, its quota allows, or its CPUs are; what one
leaves is shared by the others. Which CPUs someone is confined to counts by their number alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from j10ce.model.knob import PERIOD_US, Value
from j10ce.sim.cgroups import FakeCgroups, number

Weigh = Callable[[str, float], float]  # the weight of a cgroup that could use so many CPUs


class Mouth(NamedTuple):
    """One of those who share: what it weighs, and the most that it can use."""

    weight: float
    most: float


def divide(cgroups: FakeCgroups, wants: Mapping[str, float], cpus: float, weigh: Weigh) -> dict[str, float]:
    """CPUs in use by each of `wants`, which are paths of cgroups and how many CPUs they could use."""
    usable = _usable(cgroups, wants)
    got: dict[str, float] = {}
    below: list[tuple[str, float]] = [("", min(cpus, usable[""]))]
    while below:
        path, room = below.pop()
        children = [c for c in cgroups.children(path) if usable[c] > 0]
        own = min(wants.get(path, 0.0), room)
        mouths = [Mouth(weigh(c, usable[c]), usable[c]) for c in children]
        below += zip(children, fill(room - own, mouths), strict=True)
        if path in wants:
            got[path] = own
    return {path: got.get(path, 0.0) for path in wants}


def by_weight(cgroups: FakeCgroups) -> Weigh:
    """As the kernel does it."""
    return lambda path, _: _float(cgroups.value("cpu.weight", path))


def by_threads(path: str, usable: float) -> float:
    """A machine whose kernel cannot tell who matters: whoever has more to do gets more."""
    return usable


def fill(room: float, mouths: Sequence[Mouth]) -> list[float]:
    """Shares by weight, none above its most; what is left over goes round again."""
    shares = [0.0] * len(mouths)
    open_ = list(range(len(mouths)))
    while open_ and room > 1e-12:
        weight = sum(mouths[i].weight for i in open_)
        sated = [i for i in open_ if mouths[i].most - shares[i] <= room * mouths[i].weight / weight]
        for i in sated or open_:
            part = mouths[i].most - shares[i] if sated else room * mouths[i].weight / weight
            shares[i] += part
        room -= sum(mouths[i].most for i in sated) if sated else room
        open_ = [i for i in open_ if i not in sated]
    return shares


def _usable(cgroups: FakeCgroups, wants: Mapping[str, float]) -> dict[str, float]:
    """What each cgroup could use with all inside it."""
    usable = dict.fromkeys(cgroups.by_path, 0.0)
    for path in sorted(cgroups.by_path, key=lambda p: p.count("/"), reverse=True):
        inside = wants.get(path, 0.0) + sum(usable[c] for c in cgroups.children(path))
        quota = number(cgroups.by_path[path].values, "cpu.max") / PERIOD_US
        usable[path] = min(inside, quota, float(len(cgroups.effective_cpus(path))))
    inside = sum(usable[c] for c in cgroups.children("")) + wants.get("", 0.0)
    return usable | {"": min(inside, float(len(cgroups.cpus)))}


def _float(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)
