"""Threads on a few CPUs: real-time ones first, all others with what is left; most sleep between two looks."""

from __future__ import annotations

from dataclasses import dataclass

from j10ce.kernel.realtime.machine import FAIR, OURS, ThreadMachine, WardPlace


@dataclass
class FakeThread:
    top: str
    wants: float = 1.0  # of one CPU
    spins: bool = False
    policy: int = FAIR
    ran_s: float = 0.0
    sleeps: int = 0
    cpu: int = 0


class FakeMachine:
    def __init__(self, cpus: int = 2, *, by_cpu: bool = True) -> None:
        self.cpus = cpus
        self.by_cpu = by_cpu
        self.threads_of: dict[int, FakeThread] = {}
        self.used: dict[str, list[float]] = {}
        self.realtime_s = 0.0  # over all
        self.refuses = ""
        self.able: set[int] = set()  # whom it does not refuse
        self.looks = 0  # how often somebody asked how long a thread ran
        self._next = 100

    def place(self, top: str) -> WardPlace:
        self.used.setdefault(top, [0.0] * self.cpus)
        return WardPlace(top, "tasks", f"{top}/usage", f"{top}/usage_percpu" if self.by_cpu else "")

    def spawn(self, top: str, *, wants: float = 1.0, spins: bool = False, policy: int = FAIR) -> int:
        self._next += 1
        self.threads_of[self._next] = FakeThread(top, wants, spins, policy)
        return self._next

    def advance(self, passed_s: float) -> None:
        """Whoever comes first gets the emptiest CPU."""
        free = [passed_s] * self.cpus
        for thread in sorted(self.threads_of.values(), key=lambda t: t.policy == FAIR):
            cpu = max(range(self.cpus), key=free.__getitem__)
            ran = min(free[cpu], thread.wants * passed_s)
            free[cpu] -= ran
            thread.ran_s, thread.cpu = thread.ran_s + ran, cpu
            thread.sleeps += not thread.spins
            self.used.setdefault(thread.top, [0.0] * self.cpus)[cpu] += ran
            self.realtime_s += ran if thread.policy == OURS else 0.0

    # ------------------------------------------------------------------ as the keeper sees it

    def threads(self, place: WardPlace, /) -> set[int] | None:
        if place.top not in self.used:
            return None
        return {number for number, thread in self.threads_of.items() if thread.top == place.top}

    def usage_s(self, place: WardPlace, /) -> float | None:
        return sum(self.used[place.top]) if place.top in self.used else None

    def births(self) -> int:
        return self._next

    def per_cpu_s(self, place: WardPlace, /) -> list[float] | None:
        return [*self.used[place.top]] if place.per_cpu and place.top in self.used else None

    def forget(self, place: WardPlace, /) -> None:
        """Nothing is kept open here."""

    def ran_s(self, thread: int, /) -> float | None:
        self.looks += 1
        return self.threads_of[thread].ran_s if thread in self.threads_of else None

    def sleeps(self, thread: int, /) -> int | None:
        return self.threads_of[thread].sleeps if thread in self.threads_of else None

    def cpu(self, thread: int, /) -> int | None:
        return self.threads_of[thread].cpu if thread in self.threads_of else None

    def policy(self, thread: int, /) -> int | None:
        return self.threads_of[thread].policy if thread in self.threads_of else None

    def change(self, thread: int, policy: int, /) -> str:
        if thread in self.threads_of:
            if policy == OURS and self.refuses and thread not in self.able:
                return self.refuses
            self.threads_of[thread].policy = policy
        return ""


_: ThreadMachine = FakeMachine()
