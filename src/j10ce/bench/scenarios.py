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
PER_CPU: Final = 4  # workers, and antagonists
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

    def load(self, cpus: int, seconds: float) -> Load:
        return Load(
            rate=cpus * self.peak * 1e6 / CPU_US,
            least_rate=None if self.least is None else cpus * self.least * 1e6 / CPU_US,
            seconds=seconds,
            workers=PER_CPU * cpus,
            cpu_us=CPU_US,
            antagonist=self.antagonist,
            antagonists=PER_CPU * cpus,
            strangers=self.strangers,
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
)  # fmt: skip
SCENARIOS: Final[Mapping[str, Contest]] = {scenario.name: scenario for scenario in _ALL}


def quick(scenario: Contest) -> Contest:
    """Off, on, off: in half a minute, and to be watched."""
    chosen = {arm.name: arm for arm in scenario.arms}
    off, on = chosen[NO_QOS], chosen[LS]
    return replace(scenario, arms=(off, on, off), rounds=1, seconds=9.0)
