"""What floors of disks are worth on this kernel: a whole agent, real readers and writers, a disk of this run.

latency  a protected reader of single pages anywhere, alone, beside a writer in sequence, and beside one with nobody
         protected, in turns: p99, and what the writer keeps of what is left. A loop device in memory that is said to do
         much less than it does, so that what is seen is what caps on others do, and no disk's own waiting
floors   three readers in sequence that all want the whole disk, two of them with a floor: bytes by the kernel's count.
         By io.cost, on a disk that is measured first: J10CE_BENCH_DISK=/dev/vdX, of which all is lost
agent    CPU of a tick and memory, with and without floors on disks, at 200 workloads

`python -m benchmarks disk [latency | floors | agent]…`: all where none is named. As root. For floors in a guest:

python -m tests.lab run --disk 128 --disk-bps 40000000 --env J10CE_BENCH_DISK=/dev/vda -- \\
    .venv/bin/python -m benchmarks.disk floors
"""

from __future__ import annotations

import os
import stat
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks.agent import MEASURED, Agent, running
from benchmarks.facts import machine_facts
from j10ce.cli.prove.direct_io import WORKS, OpenDisk, fill, measure
from j10ce.cli.prove.measuring import speed
from j10ce.host.disks import discover
from j10ce.host.mounts import IO, Hierarchies
from j10ce.model.machine.calibration import Calibration
from j10ce.model.machine.disk import Disk
from j10ce.observe.calibrations import Calibrations
from tests.enforce.disk.loop import Loop, loop

MIB: Final = 1 << 20
PAGE: Final = 4096
SIZE: Final = 128 * MIB
NAMED: Final = "J10CE_BENCH_DISK"
ROUNDS: Final = int(os.environ.get("J10CE_BENCH_ROUNDS", "3"))
WORK_S: Final = float(os.environ.get("J10CE_BENCH_WORK_S", "2"))  # of each of the six things that are measured of it
WARM_S, LOOK_S = 5.0, 6.0
READS_S: Final = 300  # that the protected reader begins in a second
SAID: Final = {"readBps": "400M", "writeBps": "200M", "readIops": 40_000, "writeIops": 20_000}
# argv: device, bytes at a time, `anywhere` or `row`, `read` or `write`, how many at a time, and how many a second (0:
# all it can). A line on stdin begins and ends what is counted; then come how often, and how long each took, in µs.
TOIL: Final = """
import mmap, os, random, sys, threading, time
device, size, how, what, depth, pace = *sys.argv[1:2], int(sys.argv[2]), *sys.argv[3:5], *map(int, sys.argv[5:])
fd = os.open(device, os.O_RDWR | os.O_DIRECT)
blocks, took, counting, stop = os.lseek(fd, 0, os.SEEK_END) // size, [], False, False
def toil(first):
    page, at = mmap.mmap(-1, size), first
    page.write(os.urandom(size))
    while not stop:
        at = random.randrange(blocks) if how == "anywhere" else (at + depth) % blocks
        begun = time.perf_counter()
        (os.preadv if what == "read" else os.pwritev)(fd, [page], at * size)
        if counting: took.append(time.perf_counter() - begun)
        if pace: time.sleep(1 / pace)
threads = [threading.Thread(target=toil, args=(n,)) for n in range(depth)]
for t in threads: t.start()
input(); counting = True
input(); counting = False; stop = True
for t in threads: t.join()
print(len(took), *(round(t * 1e6) for t in took[:200000]), flush=True)
"""


SELDOM: Final = """
import mmap, os, sys, time
fd, page = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 65536)
while True:
    os.preadv(fd, [page], 0)
    time.sleep(0.5)
"""


class Bed(NamedTuple):
    agent: Agent
    disk: str


class Toiler:
    """A process that the agent has placed."""

    def __init__(self, bed: Bed, name: str, words: tuple[str, ...], **fields: Any) -> None:
        self._bed, self._name = bed, name
        command = [sys.executable, "-c", TOIL, f"/dev/{bed.disk}", *words]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        body = {"name": name, "pid": self._child.pid, **fields}
        try:
            bed.agent.ask(msgspec.json.encode(body))
        except BaseException:
            self._child.kill()
            raise

    def say(self) -> None:
        if self._child.stdin:
            self._child.stdin.write("\n")
            self._child.stdin.flush()

    def end(self) -> tuple[int, list[float]]:
        """How often, and how long each took, in ms."""
        out, _ = self._child.communicate()
        times = [int(word) / 1000 for word in out.split()]
        with suppress(Exception):
            self._bed.agent.client.delete(f"/v1/workloads/default/{self._name}", ended="1")
        return int(times[0] * 1000), times[1:]


def main() -> int:
    if os.geteuid():
        print("Unsupported: this needs root")
        return 0
    machine_facts()
    wanted = sys.argv[1:] or ["latency", "floors", "agent"]
    arms = {"latency": latency, "floors": floors, "agent": agent_itself}
    met = [arms[name]() for name in wanted]
    return not all(met)


# ---------------------------------------------------------------------------------------------- latency


def latency() -> bool:
    """The reader is promised twice what it takes; the writer is not of best effort, which lacks CPU time."""
    alone: list[float] = []
    beside: list[float] = []
    bare: list[float] = []
    kept: list[float] = []
    with (
        loop(Path("/dev/shm") / f"j10cebench-{os.getpid()}", SIZE) as device,
        running(_said(device.name, SAID)) as agent,
    ):
        here = Bed(agent, device.name)
        for number in range(ROUNDS):
            alone += _read(here, number, floor=0, writer=False)[0]
            bare += _read(here, number, floor=0, writer=True)[0]
            times, written = _read(here, number, floor=2 * READS_S * PAGE, writer=True)
            beside += times
            left = 1 - len(times) / LOOK_S / int(SAID["readIops"])
            kept.append(written / (left * 200e6))
    ratios = [_p99(beside) / _p99(alone), _p99(beside) / _p99(bare)]
    keeps = statistics.median(kept)
    for name, times in (("alone", alone), ("beside a writer", beside), ("the same, unprotected", bare)):
        print(f"  {name}: p99 {_p99(times):.3f} ms, median {statistics.median(times):.3f}, {len(times)} reads")
    print(f"4 KiB anywhere, p99 ÷ alone {ratios[0]:.2f} (wanted: 1.5), ÷ unprotected {ratios[1]:.3f}")
    print(f"  the writer keeps {keeps:.0%} of what is left (wanted: 80 %)")
    return ratios[0] <= 1.5 and keeps >= 0.8


def _read(here: Bed, number: int, *, floor: int, writer: bool) -> tuple[list[float], float]:
    """How long each read took, and bytes that the writer wrote in a second."""
    promised = {"minimum": {"diskRead": floor}} if floor else {}
    words = (str(PAGE), "anywhere", "read", "1", str(READS_S))
    toilers = [Toiler(here, f"api{number}", words, profile="ls", **promised)]
    if writer:
        toilers.append(Toiler(here, f"sync{number}", (str(MIB), "row", "write", "4", "0"), profile="burstable"))
    counted = _counted(toilers)
    return counted[0][1], counted[1][0] * MIB / LOOK_S if writer else 0.0


def _counted(toilers: list[Toiler]) -> list[tuple[int, list[float]]]:
    time.sleep(WARM_S)
    for _ in range(2):
        for toiler in toilers:
            toiler.say()
        time.sleep(LOOK_S if _ == 0 else 0)
    return [toiler.end() for toiler in toilers]


# ---------------------------------------------------------------------------------------------- floors


def floors() -> bool:
    """Half of the disk for one, a fifth for another, nothing for the third."""
    named = os.environ.get(NAMED)
    if not named or Hierarchies.discover().version(IO) != 2:
        print(f"floors: left out, they need {NAMED} and io.cost of cgroup v2")
        return True
    with _measured(named) as (here, speeds):
        whole = speeds.read.bps
        promised = {"half": whole // 2, "fifth": whole // 5, "none": 0}
        words = (str(MIB), "row", "read", "2", "0")
        toilers = [
            Toiler(here, name, words, profile="ls", minimum={"diskRead": floor})
            if floor
            else Toiler(here, name, words, profile="be")
            for name, floor in promised.items()
        ]
        counts = [count * MIB / LOOK_S for count, _ in _counted(toilers)]
        shares = dict(zip(promised, counts, strict=True))
        cost = Path(Hierarchies.discover().file(IO, "", "io.cost.qos")).read_text().strip()
        print(f"io.cost.qos: {cost or 'nothing'}")
    held = {name: shares[name] / floor for name, floor in promised.items() if floor}
    shown = ", ".join(f"{name} {share / MIB:.1f} MiB/s" for name, share in shares.items())
    print(f"floors on a disk of {whole / MIB:.0f} MiB/s: {shown}; sum {sum(counts) / whole:.0%} of it")
    print(f"  {', '.join(f'{name} {part:.0%} of its floor' for name, part in held.items())} (wanted: 90 %)")
    return min(held.values()) >= 0.9


# ---------------------------------------------------------------------------------------------- the agent itself


def agent_itself() -> bool:
    """The same workloads: nobody is promised anything of a disk, then twenty more who work there are."""
    seen = {}
    for arm in ("without", "with"):
        with _in_memory() as device, running(_said(device.name, SAID) if arm == "with" else {}) as agent:
            for n in range(MEASURED):
                agent.place(n)
            for n in range(MEASURED // 10):
                _work(agent, n, device.name, promised=arm == "with")
            time.sleep(30.0)  # the series that there will be
            seen[arm] = _tick(agent)
    (ms, mib), (then_ms, then_mib) = seen["without"], seen["with"]
    print(
        f"{MEASURED} workloads and 20 that read, which are then promised that: tick {ms:.1f} -> {then_ms:.1f} ms of CPU"
    )
    print(f"  and {mib:.1f} -> {then_mib:.1f} MiB (wanted: at most 2 ms and 10 MiB more)")
    return then_ms - ms <= 2.0 and then_mib - mib <= 10.0


def _work(agent: Agent, n: int, disk: str, *, promised: bool) -> None:
    agent.kids.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", SELDOM, f"/dev/{disk}"]))
    body: dict[str, Any] = {"name": f"io{n}", "pid": agent.kids[-1].pid, "profile": "ls"}
    agent.ask(msgspec.json.encode(body | ({"minimum": {"diskRead": 100_000}} if promised else {})))


def _tick(agent: Agent) -> tuple[float, float]:
    """ms of CPU of each over half a minute, and MiB."""
    runs, cpu = 'j10ce_ring_runs_total{cause="tick"}', "j10ce_ring_cpu_seconds_total"
    first, spent = agent.metric(runs), agent.metric(cpu)
    time.sleep(30.0)
    return (agent.metric(cpu) - spent) / (agent.metric(runs) - first) * 1000, agent.memory_mib()


# ---------------------------------------------------------------------------------------------- the bed


@contextmanager
def _in_memory() -> Iterator[Loop]:
    image = Path("/dev/shm") / f"j10cebench-{os.getpid()}"
    try:
        with loop(image, SIZE) as device:
            yield device
    finally:
        image.unlink(missing_ok=True)


@contextmanager
def _measured(device: str) -> Iterator[tuple[Bed, Calibration]]:
    """An agent that knows what a disk can do."""
    status = os.stat(device)
    if not stat.S_ISBLK(status.st_mode):
        raise SystemExit(f"{NAMED}: {device} is no block device")
    disk = discover()[f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"]
    speeds = _speeds(device, disk)
    with running(_said(disk.name, {"managed": True})) as agent:
        Calibrations(agent.folder / "state").keep(disk, speeds)
        time.sleep(LOOK_S)  # it looks again on a tick
        yield Bed(agent, disk.name), speeds


def _speeds(device: str, disk: Disk) -> Calibration:
    """As `calibrate` does it, on the disk itself."""
    fd = os.open(device, os.O_RDWR | os.O_DIRECT)
    try:
        place = fill(OpenDisk(fd, 0, True), min(SIZE, disk.size), 120.0, lambda _: None)
        figures = {work.name: measure(place, work, WORK_S, lambda _: None) for work in WORKS}
    finally:
        os.close(fd)
    for name, figure in figures.items():
        bound = ", bound by CPU" if figure.bound else ""
        print(f"# {disk.name}: {name} {figure.bps / MIB:.0f} MiB/s, {figure.iops:.0f}/s{bound}")
    return Calibration(disk.name, disk.size, speed(figures, "reads"), speed(figures, "writes"))


def _said(disk: str, said: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"io": {"disks": {disk: said}}}


def _p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


if __name__ == "__main__":
    sys.exit(main())
