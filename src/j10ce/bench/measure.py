"""One arm in one round: processes are started, put where the arm wants them, let go together, and counted."""

from __future__ import annotations

import os
import resource
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from msgspec.structs import replace

from j10ce.bench import machine
from j10ce.bench.crowd.gated import Gated
from j10ce.bench.crowd.service import DENIED, PAIR
from j10ce.bench.figures import by_second
from j10ce.bench.layouts.layout import Attended, Crowd, Seating
from j10ce.bench.taken import Arm, Load, Taken
from j10ce.errors import QosError, Unsupported

LOOK_S: Final = 0.25
# After the last request was due; what is not served by then is given up, and counts as long as was waited.
DRAIN_S: Final = 6.0
SPARE: Final = 2  # times the requests that are expected
GONE_S: Final = 5.0
SETTLE_S: Final = 0.3  # antagonists run before the first request is due

Live = Callable[[int, Sequence[float]], None]  # a second that is over, and its latencies so far
Meter = Callable[[], tuple[float, float]]  # of our agent: CPU seconds so far, MiB


class Places(NamedTuple):
    """Where requests go, and what antagonists do."""

    service: str = ""
    antagonists: str = ""
    used_s: Callable[[], float] | None = None  # of what is divided, where that is not CPUs


NOWHERE: Final = Places()


class Look(NamedTuple):
    """CPU seconds so far."""

    machine: machine.Spent
    antagonists: float
    agent: float
    service: float
    at: float  # the clock
    used: float  # seconds that what is divided was in use


def measure(
    arm: Arm, load: Load, layout: Seating, seed: int, live: Live, meter: Meter | None = None, places: Places = NOWHERE
) -> Taken:
    """Raises Unsupported where this machine cannot run the arm."""
    fd = os.memfd_create("latencies")
    gathered = _gathered(arm, load, places, fd, seed)
    with open(fd, "r+b", buffering=0) as table, gathered as (service, antagonists, crowd):
        with layout.around(crowd) as attended:
            antagonists.go()
            time.sleep(SETTLE_S)
            before = _look(crowd, meter, places)
            started = machine.cpu_s([service.pid])
            service.go()
            code = _attend(service, load, attended, lambda: read(table.fileno()), live)
            after = _look(crowd, meter, places)
            _refuse_failed(service, code)
            mib = meter()[1] if meter else None
            spent = _between(before, after)
            taken = _taken(read(table.fileno()), load, spent, started)
            divided = spent.used / spent.at if places.used_s else taken.filled
            result = replace(
                taken, filled=divided, cost=taken.cost if meter else None, mib=mib, refaults=attended.refaults()
            )
            service.end()
            antagonists.end()
            _until_gone(crowd)
    return result


@contextmanager
def _gathered(arm: Arm, load: Load, places: Places, fd: int, seed: int) -> Iterator[tuple[Gated, Gated, Crowd]]:
    """All of them ready at their gates; none is left afterwards."""
    seconds = load.seconds + load.warm
    os.ftruncate(fd, round(load.rate * seconds * SPARE + 1000) * PAIR)
    least = load.rate if load.least_rate is None else load.least_rate
    does = load.workers, load.work, places.service, load.cpu_us
    with Gated(
        "j10ce.bench.crowd.service", fd, load.rate, least, seconds, *does, seed, arm.priority, pass_fds=(fd,)
    ) as service:
        count = load.antagonists if arm.beside else 0
        with Gated("j10ce.bench.crowd.antagonist", load.antagonist, count, places.antagonists) as antagonists:
            service.ready()
            yield service, antagonists, Crowd(service.pid, [int(pid) for pid in antagonists.ready()], load.strangers)


def _until_gone(crowd: Crowd) -> None:
    """Whoever is killed with its starter needs a moment; a cgroup with somebody in it cannot be removed."""
    ends = time.monotonic() + GONE_S
    while any(os.path.exists(f"/proc/{pid}") for pid in crowd.antagonists) and time.monotonic() < ends:
        time.sleep(0.01)


def _look(crowd: Crowd, meter: Meter | None, places: Places) -> Look:
    """The service's own is known once it has ended, and so have its workers."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    agent = meter()[0] if meter else 0.0
    own, used = ended.ru_utime + ended.ru_stime, places.used_s() if places.used_s else 0.0
    return Look(machine.spent(), machine.cpu_s(crowd.antagonists), agent, own, time.monotonic(), used)


def read(fd: int) -> list[tuple[float, float]]:
    """(due, took) of every request in the shared table; took is 0 for one that is not served."""
    values = array("d", os.pread(fd, os.fstat(fd).st_size, 0))
    return [(due, took) for due, took in zip(values[::2], values[1::2], strict=True) if due]


def _attend(
    service: Gated, load: Load, attended: Attended, look: Callable[[], list[tuple[float, float]]], live: Live
) -> int | None:
    began, shown = time.monotonic(), 0
    while (code := service.wait(LOOK_S)) is None:
        passed = time.monotonic() - began
        if passed > load.warm + load.seconds + DRAIN_S:
            return None
        if int(passed) > shown and shown < load.warm + load.seconds:
            attended.tend()
            if shown >= load.warm:
                live(shown - load.warm, [took for due, took in look() if took and int(due) == shown])
            shown += 1
    return code


def _refuse_failed(service: Gated, code: int | None) -> None:
    if code == DENIED:
        raise Unsupported("SCHED_FIFO for this cgroup", needs="real-time budget (cpu.rt_runtime_us) or the root cgroup")
    if code:
        raise QosError(f"the service ended with {code}: {service.last_words()}")


def _between(before: Look, after: Look) -> Look:
    busy, idle = (b - a for a, b in zip(before.machine, after.machine, strict=True))
    others = (b - a for a, b in zip(before[1:], after[1:], strict=True))
    return Look(machine.Spent(busy, idle), *others)


def _taken(table: list[tuple[float, float]], load: Load, used: Look, started: float) -> Taken:
    """`started`: what the service had used before its first request."""
    busy, idle = used.machine
    total, own = busy + idle, used.service - started
    counted = [(due - load.warm, took) for due, took in table if due >= load.warm]
    waited = [(due, took or load.seconds + DRAIN_S - due) for due, took in counted]
    return Taken(
        seconds=by_second(waited, load.seconds),
        busy=busy / total,
        filled=used.antagonists / (used.antagonists + idle) if used.antagonists else None,
        others=max(busy - used.antagonists - used.agent - own, 0.0) / total,
        cost=used.agent * (os.cpu_count() or 1) / total,
        unserved=sum(not took for _, took in counted),
        served=sum(0 < took < load.seconds - due for due, took in counted) / load.seconds,
    )
