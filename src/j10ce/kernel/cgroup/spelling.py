"""How a knob is spelled in the files of a cgroup: the vocabulary of the v1 and v2 tables."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from j10ce.kernel import file
from j10ce.model.knob import PERIOD_US, Value, format_cpus, parse_cpus
from j10ce.model.plan import Refused

Files = Mapping[str, str]  # file name, relative to the cgroup, to its text

MIN_QUOTA_US: Final = 1000
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
# A limit that no machine reaches: how v1 prints "no limit", in pages of any size.
_V1_NO_LIMIT: Final = 1 << 62


class Cgroup(NamedTuple):
    """One cgroup directory of one hierarchy."""

    directory: str

    def text(self, name: str) -> str | None:
        return file.read(f"{self.directory}/{name}")

    def number(self, name: str) -> float | None:
        """`max` and v1's huge or negative numbers are infinite."""
        text = self.text(name)
        if text is None or text == "":
            return None
        return math.inf if text in ("max", "-1") or int(text) >= _V1_NO_LIMIT else float(text)

    def cpus(self) -> frozenset[int] | None:
        text = self.text("cpuset.cpus")
        return None if text is None else parse_cpus(text)

    @property
    def parent(self) -> Cgroup:
        return Cgroup(os.path.dirname(self.directory))

    def children(self, path: str = "") -> list[str]:
        """Names of the cgroups right below; none when this one is gone."""
        try:
            with os.scandir(f"{self.directory}/{path}") as entries:
                return sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []

    def below(self, prefix: str = "") -> Iterator[str]:
        """Every cgroup below, as a relative path, parents first."""
        for name in self.children(prefix):
            yield f"{prefix}{name}"
            yield from self.below(f"{prefix}{name}/")


class Spelling(NamedTuple):
    """One knob: the files that hold it (the first proves that the kernel has it) and how values become text."""

    files: tuple[str, ...]
    parse: Callable[[Cgroup], Value | None]
    spell: Callable[[Value, Cgroup], Files]
    quantise: Callable[[Value], Value]
    also: Callable[[Cgroup, Files], Files | Refused] = lambda _, wanted: (
        wanted
    )  # other files that a write must move along
    usage: str = ""  # the file that counts what a cap limits
    since: tuple[int, int] = (0, 0)  # the kernel that brought it, for where no cgroup shows it
    needs: str = ""
    instead: str = ""


def number(v: Value) -> float:
    if isinstance(v, str | frozenset):
        raise TypeError(f"{v!r} is no number")
    return float(v)


# The shapes of a knob; a table row adds what is special with `_replace`.


def flag(name: str) -> Spelling:
    def spell(v: Value, _: Cgroup) -> Files:
        return {name: str(int(number(v)))}

    def quantise(v: Value) -> Value:
        return 1.0 if number(v) else 0.0

    return Spelling((name,), lambda c: c.number(name), spell, quantise)


def whole(name: str) -> Spelling:
    """A plain number of microseconds. The kernel refuses `max`, which is right: there is no unlimited burst."""

    def quantise(v: Value) -> Value:
        n = number(v)
        return n if n == math.inf else float(max(0, math.floor(n)))

    return bytes_(name)._replace(quantise=quantise)


def integer(name: str) -> Spelling:
    """A number that may be negative, and that is never unlimited."""

    def parse(c: Cgroup) -> Value | None:
        text = c.text(name)
        return float(int(text)) if text else None

    def spell(v: Value, _: Cgroup) -> Files:
        return {name: str(int(number(v)))}

    def quantise(v: Value) -> Value:
        n = number(v)
        return n if n == math.inf else float(math.floor(n + 0.5))

    return Spelling((name,), parse, spell, quantise)


def bytes_(name: str, unlimited: str = "max") -> Spelling:
    def spell(v: Value, _: Cgroup) -> Files:
        n = number(v)
        return {name: unlimited if n == math.inf else str(int(n))}

    return Spelling((name,), lambda c: c.number(name), spell, pages)


def cpus() -> Spelling:
    def spell(v: Value, _: Cgroup) -> Files:
        if not isinstance(v, frozenset):
            raise TypeError(f"{v!r} is no set of CPUs")
        return {"cpuset.cpus": format_cpus(v)}

    return Spelling(("cpuset.cpus",), Cgroup.cpus, spell, lambda v: v)


def pages(v: Value) -> Value:
    """The kernel counts whole pages and drops the rest."""
    n = number(v)
    return n if n == math.inf else float(max(0, math.floor(n)) // PAGE * PAGE)


def quota(v: Value) -> Value:
    n = number(v)
    return n if n == math.inf else float(max(MIN_QUOTA_US, math.floor(n)))


def per_period(quota_us: float, period_us: float) -> float:
    """A quota of any period as µs per 100 ms."""
    return quota_us if quota_us == math.inf else quota_us * PERIOD_US / period_us
