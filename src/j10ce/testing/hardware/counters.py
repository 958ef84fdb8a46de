"""Hardware counters in memory, for machines that have none."""

from __future__ import annotations

from errno import ENOENT

from j10ce.host.perf import Counts


class FakeCounters:
    """A provider: `counters[directory]` is what the tasks of that cgroup have done so far."""

    def __init__(self) -> None:
        self.counters: dict[str, Counts] = {}
        self.opened: list[str] = []  # and not closed

    def __call__(self, directory: str, cpus: frozenset[int]) -> FakeCounter:
        if directory not in self.counters:
            raise FileNotFoundError(ENOENT, "no such cgroup", directory)
        self.opened.append(directory)
        return FakeCounter(self, directory)


class FakeCounter:
    def __init__(self, fake: FakeCounters, directory: str) -> None:
        self._fake = fake
        self._directory = directory

    def read(self) -> Counts:
        return self._fake.counters[self._directory]

    def close(self) -> None:
        self._fake.opened.remove(self._directory)
