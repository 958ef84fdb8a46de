"""What the threads of a group weigh beside the groups in it: by the time that they run or wait, not by their number.

    demand = Σ weight · min(1, (run + wait over the last look) / its length)   [shares]
A starved thread waits, so it counts in full; a sleeping one counts nothing. One that began since the last look counts
in full if it is ready to run right now: it stands for those that came and went meanwhile, as a build's compilers do.
Its weight is the kernel's own for its nice value, or for being idle. In the root the scheduler puts the threads of a
session into one group where autogroup is on: they count as one at most, by the nice value of the session. It rises at
once, and falls with the highest of the last ten seconds. It moves in steps, so that weights do not follow every thread
that comes and goes.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from j10ce.host.files import read_whole
from j10ce.model.knob import IDLE_SHARES

# sched_prio_to_weight of the kernel, from nice -20 to 19. A real-time thread comes before all weights: none of ours can
# hold it back, so it counts as any other.
SHARES_OF_NICE: Final = (
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
    9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
    1024, 820, 655, 526, 423, 335, 272, 215, 172, 137,
    110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
)  # fmt: skip
SCHED_IDLE: Final = 5
NICE_FIELD, STARTED_FIELD, POLICY_FIELD = 16, 19, 38  # of /proc/<tid>/stat, from the state on
PF_KTHREAD: Final = 0x00200000
AUTOGROUP_ON: Final = "sys/kernel/sched_autogroup_enabled"
CLOSEST_S: Final = 0.5  # over less than that the kernel's own bookkeeping shows
REMEMBERED_S: Final = 10.0
LEAST: Final = 0.02  # threads; what wants less than that is no rival
STEPS: Final = 8  # per doubling
FALL: Final = 1.25  # it falls when it is that many times too high


class Demand:
    """The threads of one group."""

    def __init__(self, proc: str = "/proc", *, at_root: bool = False) -> None:
        self.threads = 0  # that belong to processes
        self.held = 0.0  # shares
        self._proc = proc
        self._at_root = at_root
        self._users: dict[int, bool] = {}  # which threads are none of the kernel's
        self._spent: dict[int, float] = {}  # seconds that each ran or waited, all in all
        self._at = -math.inf
        self._recent: deque[tuple[float, float]] = deque()

    def look(self, now: float, tids: Iterable[int]) -> float:
        """Shares of the threads that want to run, as of the looks so far."""
        if now - self._at < CLOSEST_S:
            return self.held
        self._users = {tid: self._users[tid] if tid in self._users else self._is_user(tid) for tid in tids}
        users = [tid for tid, user in self._users.items() if user]
        spent = {tid: s for tid in users if (s := self._seconds(tid)) is not None}
        wanting = {tid: self._wants(tid, spent, now) for tid in users}
        self.threads, self._spent, self._at = len(users), spent, now
        self._recent.append((now, self._shares(wanting) if math.fsum(wanting.values()) >= LEAST else 0.0))
        while now - self._recent[0][0] > REMEMBERED_S:
            self._recent.popleft()
        peak = max(shares for _, shares in self._recent)
        if peak > self.held or peak * FALL < self.held:
            self.held = _step_up(peak)
        return self.held

    def _shares(self, wanting: Mapping[int, float]) -> float:
        busy = {tid: wants for tid, wants in wanting.items() if wants}
        if not self._at_root or (read_whole(f"{self._proc}/{AUTOGROUP_ON}") or b"0").strip() == b"0":
            return math.fsum(wants * self._weight(tid) for tid, wants in busy.items())
        sessions: dict[bytes, float] = {}
        for tid, wants in busy.items():
            session = read_whole(f"{self._proc}/{tid}/autogroup") or b""  # /autogroup-7 nice 0
            sessions[session] = sessions.get(session, 0.0) + wants
        return math.fsum(min(1.0, wants) * _session_weight(session) for session, wants in sessions.items())

    def _weight(self, tid: int) -> float:
        fields = self._stat(tid)
        if len(fields) <= POLICY_FIELD:
            return 0.0  # it ended
        return IDLE_SHARES if int(fields[POLICY_FIELD]) == SCHED_IDLE else _of_nice(int(fields[NICE_FIELD]))

    def _wants(self, tid: int, spent: dict[int, float], now: float) -> float:
        if tid not in spent:
            return 1.0  # this kernel does not count it
        if self._at == -math.inf:  # the first look: the mean of its life
            return min(1.0, spent[tid] / max(CLOSEST_S, self._age(tid)))
        before = self._spent.get(tid, math.inf)
        if spent[tid] >= before:
            return min(1.0, (spent[tid] - before) / (now - self._at))
        ready = self._stat(tid)[:1] == [b"R"]  # it began since, perhaps under the number of another
        return 1.0 if ready else min(1.0, spent[tid] / (now - self._at))

    def _seconds(self, tid: int) -> float | None:
        text = read_whole(f"{self._proc}/{tid}/schedstat")
        if not text:
            return None
        ran, waited = text.split()[:2]
        return (int(ran) + int(waited)) / 1e9

    def _age(self, tid: int) -> float:
        fields, uptime = self._stat(tid), read_whole(f"{self._proc}/uptime")
        if len(fields) <= STARTED_FIELD or not uptime:
            return math.inf
        return float(uptime.split()[0]) - int(fields[STARTED_FIELD]) / os.sysconf("SC_CLK_TCK")

    def _is_user(self, tid: int) -> bool:
        fields = self._stat(tid)
        return bool(fields) and not int(fields[6]) & PF_KTHREAD  # without any it ended since it was listed

    def _stat(self, tid: int) -> list[bytes]:
        """From the state on: the name before it may hold anything."""
        stat = read_whole(f"{self._proc}/{tid}/stat") or b""
        return stat[stat.rfind(b")") + 1 :].split()


def _session_weight(autogroup: bytes) -> float:
    _, _, nice = autogroup.partition(b" nice ")
    return _of_nice(int(nice or 0))


def _of_nice(nice: int) -> float:
    return float(SHARES_OF_NICE[nice + 20])


def _step_up(shares: float) -> float:
    return math.pow(2.0, math.ceil(math.log2(shares) * STEPS - 1e-9) / STEPS) if shares else 0.0
