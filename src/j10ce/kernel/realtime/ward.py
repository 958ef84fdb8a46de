"""One workload in the keeper's care: real-time while it has credit, fair when that is used up."""

from __future__ import annotations

from typing import Final

from j10ce.kernel.realtime.crowding import EVERYWHERE, Use
from j10ce.kernel.realtime.law import FRESH, SAVED_S, settle
from j10ce.kernel.realtime.machine import FAIR, OURS, ThreadMachine, WardPlace, let_go
from j10ce.kernel.realtime.spinners import NEARLY, Ran, Running, Spinners

SWEEP_S: Final = 1.0  # a workload at rest is looked at as well: its threads may have been moved elsewhere
ATTRIBUTED: Final = 64  # threads whose CPU is asked for in one tick
# Of each thread, how long it is before all are listed, or made real-time, again. That costs 1 µs and 5 µs of a process
# that comes before all others: a twentieth and a fifth of a CPU, however many threads there are.
LISTED_S: Final = 20e-6
TURNED_S: Final = 25e-6


class Ward:
    def __init__(self, place: WardPlace, machine: ThreadMachine, now: float, whose: dict[int, Ward]) -> None:
        """`whose` is one book for all wards: a thread that moves from one to another is taken up there first."""
        self.place, self._whose = place, whose
        self.rate = 0.0  # min(floor, limit), in CPUs
        self.refused = ""  # why a thread could not be real-time
        self._machine = machine
        self._credit = FRESH
        self._usage_s, self._at, self._swept = machine.usage_s(place) or 0.0, now, now
        self._on = False  # whether its threads are real-time
        self._ours: set[int] = set()
        self._own: set[int] = set()  # threads with a policy of their own
        self._barred: set[int] = set()  # threads that the kernel would not have real-time when they were tried last
        self._running, self._spinners = Running(machine), Spinners(machine)
        self._per_cpu: list[float] | None = None
        self._moved, self._ran = False, list[Ran]()  # since the last look
        self._births = -1  # at the last list of threads
        self._quiet = 0.0  # until then no list is made because threads have begun, or credit has come back

    @property
    def realtime(self) -> frozenset[int]:
        return frozenset(self._ours)

    @property
    def spinners(self) -> frozenset[int]:
        return self._spinners.threads

    def measure(self, now: float, *, crowded: bool) -> Use | None:
        """What its real-time threads used since the last look; by CPU, where it is `crowded`.

        Raises FileNotFoundError when the workload is gone: its threads are fair then.
        """
        usage = self._machine.usage_s(self.place)
        if usage is None:
            self.release()
            raise FileNotFoundError(self.place.top)
        start, used = self._at, max(0.0, usage - self._usage_s)
        if not used and self._on and 0 < self.rate * SAVED_S <= self._credit.left_s:
            self._at, self._moved, self._ran = now, False, []
            return None
        self._usage_s, self._at, self._moved = usage, now, used > 0.0
        self._credit = settle(self._credit, self.rate, used if self._on else 0.0, now - start)
        if not self._on or not used:
            self._ran = []
            return None
        hot = crowded or used >= NEARLY * (now - start)
        self._ran = self._running.look(self._ours, now) if hot else []
        if not crowded:
            self._per_cpu = None
            return Use(start, now, {EVERYWHERE: used})
        return Use(start, now, self._by_cpu(used))

    def act(self, now: float, births: int, *, resting: bool) -> None:
        """By what was measured: all fair, or all real-time but those that spin. `births` is the machine's count."""
        if resting or not self._credit.realtime:
            self._quiet = max(self._quiet, now + TURNED_S * len(self._ours))
            self.release()
            return
        if not self._on and now < self._quiet:
            return
        due = not self._on or now - self._swept >= SWEEP_S
        if due or (self._moved and births != self._births and now >= self._quiet):
            if due:
                self._swept = now
                self._barred.clear()
                self._own.clear()
            self._births, self._on = births, True
            threads = self._machine.threads(self.place) or set()
            self._quiet = now + LISTED_S * len(threads)
            self._join(threads)
        if self._moved and (pardoned := self._spinners.pardon()):
            self._raise(pardoned)
        if self._ran:
            self._let_go(self._spinners.catch(self._ran, now) & self._ours)

    def release(self) -> None:
        """All are fair again."""
        self._let_go(self._ours)
        self._on, self._per_cpu = False, None

    def _join(self, threads: set[int]) -> None:
        self._let_go(self._ours - threads)
        self._own &= threads
        self._running.keep(threads)
        self._spinners.keep(threads)
        self._raise(threads - self._ours - self._own - self._barred - self.spinners)

    def _let_go(self, threads: set[int]) -> None:
        mine = [t for t in threads if self._whose.get(t) is self]
        let_go(self._machine, mine)
        for thread in mine:
            del self._whose[thread]
        self._ours = self._ours - threads

    def _raise(self, threads: set[int]) -> None:
        """A part without a budget of its own, such as the sandbox of a pod, keeps nobody else from it."""
        why = self.refused if self._barred else ""
        for thread in threads:
            policy = self._machine.policy(thread)
            if policy not in (FAIR, OURS):
                self._own.add(thread)
                continue
            if policy == FAIR and (refused := self._machine.change(thread, OURS)):
                why = refused
                self._barred.add(thread)
                continue
            self._ours.add(thread)
            self._whose[thread] = self
        self.refused = "" if self._ours else why
        if self.refused:
            self._births = -1  # all are tried again
            self._barred.clear()

    def _by_cpu(self, used_s: float) -> dict[int, float]:
        """As the kernel counts it, else by where the threads ran last; what is not known may be anywhere."""
        before, self._per_cpu = self._per_cpu, self._machine.per_cpu_s(self.place)
        if before and self._per_cpu:
            pairs = enumerate(zip(self._per_cpu, before, strict=True))
            return {cpu: now - then for cpu, (now, then) in pairs if now > then}
        uses: dict[int, float] = {}
        for thread, ran_s, _ in self._ran[:ATTRIBUTED]:
            if ran_s and (cpu := self._machine.cpu(thread)) is not None:
                uses[cpu] = uses.get(cpu, 0.0) + ran_s
        uses[EVERYWHERE] = max(0.0, used_s - sum(uses.values()))
        return uses
