"""What a NodeStrategy may say: every field within its range, and no two of them against each other.

Ranges of numbers are one table, by the path of the field: `tools/crd_rules.py` says the same to API servers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import UNSET, UnsetType

from j10ce.errors import Finding
from j10ce.model.knob import parse_cpus
from j10ce.model.parts.devices import DiskOverlay, LinkOverlay
from j10ce.model.parts.sections import ProfileOverlay
from j10ce.model.parts.strategy import HostApplication, Strategy
from j10ce.model.quantity import Duration, Quantity
from j10ce.policy.profiles import canonical
from j10ce.policy.strategy import ASCENDING, fields
from j10ce.policy.validation import syntax
from j10ce.policy.validation.sections import (
    MOST_IOPS,
    byte_rate,
    cache_findings,
    cpu_findings,
    io_findings,
    line_rate,
    memory_findings,
    network_findings,
    outside,
)

MOST_CPUS: Final = 1_000_000
MOST_BYTES: Final = 1 << 60
MOST_PERCENT: Final = 1_000_000  # of what may be more than the whole
_SHARE: Final = (0, 100)
_LENT: Final = (0, 1000)  # as the overcommit file has it
_INT32: Final = (-(2**31), 2**31 - 1)  # a priority of Kubernetes

RANGES: Final[dict[str, tuple[float, float]]] = {
    "suppress.thresholdPercent": _SHARE,
    "suppress.minPercent": _SHARE,
    "burst.staticPercent": (1, 10_000),
    "burst.quotaPercent": (100, MOST_PERCENT),
    "burst.sharePoolPercent": _SHARE,
    "eviction.perMinute": (1, 1000),
    "eviction.memory.thresholdPercent": _SHARE,
    "eviction.memory.lowerPercent": _SHARE,
    "eviction.cpu.thresholdPercent": _SHARE,
    "eviction.cpu.lowerPercent": _SHARE,
    "eviction.cpu.satisfactionLowerPercent": _SHARE,
    "eviction.cpu.satisfactionUpperPercent": _SHARE,
    "eviction.cpu.usagePercent": _SHARE,
    "eviction.allocatable.cpuThresholdPercent": (0, MOST_PERCENT),
    "eviction.allocatable.cpuLowerPercent": (0, MOST_PERCENT),
    "eviction.allocatable.memoryThresholdPercent": (0, MOST_PERCENT),
    "eviction.allocatable.memoryLowerPercent": (0, MOST_PERCENT),
    "eviction.allocatable.priorityThreshold": (0, 7999),
    "eviction.priorityThreshold": _INT32,
    "sysctls.minFreeKbytesFactor": (1, 10_000),
    "sysctls.watermarkScaleFactor": (10, 400),
    "sysctls.schedIdleSaverWmark": (0, 2**53),
    **{f"overcommit.{r}.{name}": _LENT for r in ("cpu", "memory") for name in ("thresholdPercent", "batchPercent")},
    **{
        f"overcommit.{r}.{name}": _SHARE
        for r in ("cpu", "memory")
        for name in ("midPercent", "midUnallocatedPercent", "midStaticPercent", "safetyPercent")
    },
    "normalization.ratio": (1, 5),
    "network.headroomPercent": (0, 50),
}
FEATURE: Final = re.compile(r"(NO_)?(?!NO_)[A-Za-z][A-Za-z0-9_]{0,60}")
LINK: Final = re.compile(r"[A-Za-z0-9_.:@-]{1,15}")  # as the kernel has it, without what a setting cannot spell
DISK: Final = re.compile(r"[A-Za-z0-9_.:+-]{1,64}")
SOME_TIME: Final = ("burst.period", "eviction.cpu.window", "overcommit.degrade")


def strategy_findings(strategy: Strategy) -> Iterator[Finding]:
    said = dict(fields(strategy))
    for path, (low, high) in RANGES.items():
        yield from outside(f"spec.{path}", said.get(path, UNSET), low, high)
    for path in SOME_TIME:
        yield from longer_than_nothing(f"spec.{path}", said.get(path, UNSET))
    yield from _amount("spec.suppress.bufferCpus", strategy.suppress.buffer_cpus, "CPUs")
    yield from _amount("spec.overcommit.cpu.reserved", strategy.overcommit.cpu.reserved, "CPUs")
    yield from _amount("spec.overcommit.memory.reserved", strategy.overcommit.memory.reserved, "bytes")
    yield from _cpu_list("spec.systemCpus.cpus", strategy.system_cpus.cpus)
    yield from _features("spec.sysctls.schedFeatures", strategy.sysctls.sched_features)
    difference = strategy.overcommit.difference
    if difference is not UNSET and not 0 < difference <= 1:
        yield Finding("spec.overcommit.difference", difference, "out of range", "use more than 0, and at most 1")
    for name, overlay in strategy.profiles.items():
        yield from _profile(name, overlay)
    yield from _applications(strategy.host_applications)
    for name, link in strategy.network.links.items():
        yield from _link(name, link)
    for name, disk in strategy.io.disks.items():
        yield from _disk(name, disk)
    for order in ASCENDING:
        if order.low in said and order.high in said and not order.holds(said[order.low], said[order.high]):
            problem = f"{'above' if order.equal else 'not below'} {order.high}, {said[order.high]}"
            yield Finding(f"spec.{order.low}", said[order.low], problem, "lower it, or raise the other")


def longer_than_nothing(path: str, duration: Duration | UnsetType) -> Iterator[Finding]:
    if duration is not UNSET and duration.seconds <= 0:
        yield Finding(path, str(duration), "no time at all", "write it as 30s, 10m or 7d")


def _amount(path: str, amount: Quantity | UnsetType, of: Literal["CPUs", "bytes"]) -> Iterator[Finding]:
    if amount is UNSET:
        return
    most, hint = (MOST_CPUS, "write 2, or 500m") if of == "CPUs" else (MOST_BYTES, "write 4Gi")
    if amount.percent or amount.rate:
        yield Finding(path, str(amount), f"no number of {of}", hint)
    elif amount.amount > most:
        yield Finding(path, str(amount), f"more {of} than any machine has", hint)


def _cpu_list(path: str, text: str | UnsetType) -> Iterator[Finding]:
    try:
        empty = text is not UNSET and not parse_cpus(text)
    except ValueError as e:
        yield Finding(path, text, str(e), "write it as 0-1,8")
    else:
        if empty:
            yield Finding(path, text, "no CPU", "write it as 0-1,8, or leave it out")


def _features(path: str, words: tuple[str, ...]) -> Iterator[Finding]:
    if (wrong := next((word for word in words if not FEATURE.fullmatch(word)), None)) is not None:
        yield Finding(path, wrong, "not a scheduler feature", "write NAME to have it on, NO_NAME to have it off")
    names = [word.removeprefix("NO_") for word in words]
    if twice := next((name for name in names if names.count(name) > 1), None):
        yield Finding(path, twice, "stands here twice", "say of each feature once whether it is on")


def _profile(name: str, overlay: ProfileOverlay) -> Iterator[Finding]:
    path = f"spec.profiles.{name}"
    if (known := canonical(name)) != name:
        yield Finding(path, name, "not how a profile is named", f"write {known}")
    else:
        yield from syntax.name(path, name)
    yield from cpu_findings(f"{path}.cpu", overlay.cpu)
    yield from memory_findings(f"{path}.memory", overlay.memory)
    yield from cache_findings(f"{path}.cache", overlay.cache)
    yield from network_findings(f"{path}.network", overlay.network)
    yield from io_findings(f"{path}.io", overlay.io)


def _link(name: str, link: LinkOverlay) -> Iterator[Finding]:
    path = f"spec.network.links.{name}"
    if not LINK.fullmatch(name) or name in (".", ".."):
        yield Finding(path, name, "no name of a link", "write it as `ip link` does, such as eth0")
    for field, rate in (("egress", link.egress), ("ingress", link.ingress)):
        if rate is not UNSET:
            yield from line_rate(f"{path}.{field}", rate, some=True)


def _disk(name: str, disk: DiskOverlay) -> Iterator[Finding]:
    path = f"spec.io.disks.{name}"
    if not DISK.fullmatch(name):
        yield Finding(path, name, "no name of a disk", "write its name, number or serial: sda, 8:0, S4EWNX0R123456")
    for field, rate in (("readBps", disk.read_bps), ("writeBps", disk.write_bps)):
        if rate is not UNSET:
            yield from byte_rate(f"{path}.{field}", rate)
    yield from outside(f"{path}.readIops", disk.read_iops, 1, MOST_IOPS)
    yield from outside(f"{path}.writeIops", disk.write_iops, 1, MOST_IOPS)


def _applications(applications: tuple[HostApplication, ...]) -> Iterator[Finding]:
    for n, application in enumerate(applications):
        path = f"spec.hostApplications[{n}]"
        yield from syntax.name(f"{path}.name", application.name)
        if application.name in (before.name for before in applications[:n]):
            yield Finding(f"{path}.name", application.name, "stands here twice", "give each a name of its own")
        if not all(syntax.PATH_STEP.fullmatch(step) for step in application.cgroup.split("/")):
            hint = "write it from the root of the hierarchy on, such as system.slice/nginx.service, without . and .."
            yield Finding(f"{path}.cgroup", application.cgroup, "not the path of a cgroup", hint)
        if application.profile:
            yield from syntax.name(f"{path}.profile", canonical(application.profile))
