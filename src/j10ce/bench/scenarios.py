"""What can be proved: a table of scenarios, and the arms that take turns in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from j10ce.bench.taken import ALONE, Arm, Load

UTILISATION: Final = 0.60  # of the machine, that the service needs
FLOOR: Final = 0.70  # of the machine, that it is promised
CPU_US: Final = 400
_LITTLE: Final = 0.10  # of the machine, where requests do other things than compute
PER_CPU: Final = 4  # workers, and antagonists
REDIS: Final = "redis"
REDIS_RATE: Final = 2500.0  # a redis-server has one thread: these need half of its CPU
NO_QOS: Final = "no QoS"
LS: Final = "ls"

ARMS: Final = (
    Arm(ALONE, "the service on an empty machine", "baseline", beside=False),
    Arm(NO_QOS, "everybody in one cgroup"),
    Arm("kubernetes", "kubelet's cgroups: CPU shares by request, best effort 2"),
    Arm("koordinator", "those, and its quota for best effort: 65 % of the machine less what the others use"),
    Arm(LS, "j10ce-qos, profile ls", "ours"),
    Arm("lsr", "j10ce-qos, profile lsr", "ours"),
    Arm("realtime", "j10ce-qos, profile realtime", "ours"),
    Arm("ceiling", "the service under SCHED_FIFO, for ever: what the kernel can give at most", "ceiling", priority=10),
)


_BARE: Final = ("koordinator", "ceiling")  # these divide CPU time alone
_DIVIDED: Final = tuple(arm for arm in ARMS if arm.name not in _BARE)
_BOXED: Final = tuple(arm for arm in ARMS if arm.name in (ALONE, NO_QOS, LS))
_NO_LAW: Final = tuple(arm for arm in ARMS if arm.name != "koordinator")  # it limits only what it manages


class Contest(Struct, frozen=True):
    """A question that this machine answers."""

    name: str
    asks: str
    antagonist: str
    arms: Sequence[Arm] = ARMS
    rounds: int = 3
    seconds: float = 4.0
    peak: float = UTILISATION  # of the machine, that the service needs
    least: float | None = None  # at the beginning and at the end of a day
    floor: float = FLOOR  # of the machine, that it is promised
    strangers: bool = False  # antagonists that nobody manages
    stage: str = ""  # what it is played on, beside CPUs
    work: str = "cpu"  # what a request does
    rate: float | None = None  # requests a second; absent: by CPU time
    warm: int = 0  # seconds at the beginning of a turn that do not count

    def load(self, cpus: int, seconds: float) -> Load:
        rate = self.rate or cpus * self.peak * 1e6 / CPU_US
        return Load(
            rate=rate,
            least_rate=None if self.least is None else rate * self.least / self.peak,
            seconds=seconds,
            workers=PER_CPU * cpus,
            cpu_us=CPU_US,
            antagonist=self.antagonist,
            antagonists=PER_CPU * cpus,
            strangers=self.strangers,
            work=self.work,
            warm=self.warm,
        )


_ALL: Final = (
    Contest("cpu", "CPU time beside processes that want all of it", "spinner"),
    Contest("wakers", "CPU time beside processes that wake thousands of times a second", "waker"),
    Contest("forkers", "CPU time beside processes that start others without end", "forker"),
    Contest("unmanaged", "CPU time beside spinners that nobody manages", "spinner", _NO_LAW, strangers=True),
    Contest(
        "diurnal", "a day: load from 20 % to 90 % of the machine and back, beside spinners", "spinner",
        rounds=1, seconds=20.0, peak=0.90, least=0.20, floor=0.90,
    ),
    Contest(
        "network", "small requests to a peer, beside processes that send all they can on the same link", "sender",
        _DIVIDED, peak=_LITTLE, floor=_LITTLE, stage="link", work="rpc", rate=500.0, warm=2,
    ),
    Contest(
        "disk", "reads anywhere on a disk, beside processes that write all they can on it", "writer",
        _DIVIDED, peak=_LITTLE, floor=_LITTLE, stage="disk", work="read", rate=500.0, warm=3,
    ),
    Contest(
        "memory", "a working set in a box of memory, beside processes that read more than it holds", "eater",
        _BOXED, peak=_LITTLE, floor=_LITTLE, stage="box", work="pages", rate=300.0, warm=2,
    ),
)  # fmt: skip
SCENARIOS: Final[Mapping[str, Contest]] = {scenario.name: scenario for scenario in _ALL}


def with_redis(scenario: Contest) -> Contest:
    """The same with a real server, where requests are work for a CPU."""
    return replace(scenario, stage=REDIS, work=REDIS, rate=REDIS_RATE)


def quick(scenario: Contest) -> Contest:
    """Off, on, off: in half a minute, and to be watched."""
    chosen = {arm.name: arm for arm in scenario.arms}
    off, on = chosen[NO_QOS], chosen[LS]
    return replace(scenario, arms=(off, on, off), rounds=1, seconds=9.0)
