"""A kernel facade over a link of a test's own, and senders in cgroups of its own: bytes are counted, never seconds."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from j10ce.host.net import queues
from j10ce.host.net.links import LinkTable
from j10ce.host.net.queues import Counted, counted
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.net import probe
from j10ce.kernel.net.estate import LinkEstate, ShareEstate
from j10ce.kernel.net.rates import LinkRates
from j10ce.kernel.net.traffic import TrafficClasses
from j10ce.kernel.net.trees import Trees, Way
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import Setting, TargetId, Value, link, workload
from j10ce.model.plan import Change, Outcome, Plan, ValueChange
from j10ce.model.workload import Handle, Workload
from tests.enforce.workbench import Workbench
from tests.netns import Netns

ETH0 = link("eth0")
RATE = Setting(ETH0, "link.egress.rate")
API, SYNC = workload("default", "api"), workload("default", "sync")
MBIT = 1e6
NO_PROGRAM = bytes.fromhex("9500000000000000")  # it ends without an answer
SEND = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("{here}", 0))
for _ in range({count}):
    s.sendto(bytes({size}), ("{there}", 9))
print("sent")
"""
RECEIVE = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
s.bind(("192.0.2.1", 9))
print("ready", flush=True)
for _ in range({count}):
    s.recv(65536)
"""


def value(target: TargetId, knob: str, new: Value, way: Way = "egress") -> ValueChange:
    name = "net.share" if knob == "share" else f"net.{way}.{knob}"
    return ValueChange(Setting(target, name, "eth0"), None, new, "test", "")


def rate(new: Value, way: Way = "egress") -> ValueChange:
    return ValueChange(Setting(ETH0, f"link.{way}.rate"), None, new, "test", "")


def take_over() -> ValueChange:
    return ValueChange(Setting(ETH0, "link.take_over"), None, 1.0, "test", "")


class Probation:
    """Stands for the process that gives a link back what it had; a test says how it ends."""

    def __init__(self, before: str) -> None:
        self.before = before
        self.ended: int | None = None

    def poll(self) -> int | None:
        return self.ended


class Shaped:
    """`start` may be called again: what an agent does that comes after one that was killed."""

    def __init__(self, netns: Netns, work: Workbench, journal: Path) -> None:
        self.netns, self.work, self._file = netns, work, journal
        self.support = probe.support(work.hierarchies)
        if needs := self.support["egress"].needs:
            pytest.skip(f"Unsupported: traffic needs {needs}")
        self.places = {target: work.make(target.rpartition("/")[2]) for target in (API, SYNC)}
        self.trials: list[Probation] = []
        self.start()

    def try_out(self, index: int, way: Way, before: str) -> Probation:
        self.trials.append(Probation(before))
        return self.trials[-1]

    def start(self) -> None:
        with self.netns.inside():
            self.trees = Trees(LinkTable())
        backends = (
            LinkRates(self.trees, self.support, self.try_out),
            TrafficClasses(self.trees, self.work.hierarchies, self.support),
        )
        estates = LinkEstate(self.trees), ShareEstate(self.trees)
        journal = Journal.open(self._file, "boot")
        self.kernel = Kernel(self.work.tree, (*backends, self.work.backend), journal, guard=Guard(), estates=estates)
        self.track()

    def admit(self, name: str) -> TargetId:
        """One more workload."""
        return self.admitted([name])[0]

    def admitted(self, names: Iterable[str]) -> list[TargetId]:
        who = [workload("default", name) for name in names]
        self.places |= {target: self.work.make(target.rpartition("/")[2]) for target in who}
        self.track()
        return who

    def track(self) -> None:
        self.kernel.track([Workload(*t.split("/")[1:], handle=at) for t, at in self.places.items()])

    def apply(self, *changes: Change) -> Outcome:
        return self.kernel.apply(Plan(changes))

    def done(self, *changes: Change) -> None:
        assert not (refused := self.apply(*changes).refused()), refused

    def send(self, at: Handle | None, *, count: int = 100, size: int = 1000) -> None:
        """Packets out of a cgroup; all of them have left it when this returns."""
        code = self._enter(at) + SEND.format(count=count, size=size, here="192.0.2.1", there="192.0.2.2")
        self.netns.run(sys.executable, "-I", "-S", "-c", code)

    def started(self, at: Handle, code: str, *, where: str = "") -> subprocess.Popen[str]:
        """A process of a cgroup, at the link; `where`: in another namespace."""
        inside = ("nsenter", f"--net=/run/netns/{where or self.netns.name}", sys.executable, "-I", "-S", "-c")
        return subprocess.Popen(
            (*inside, self._enter(at) + code), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def counted(self, target: TargetId | int, way: Way = "egress", *, on: str = "eth0") -> Counted:
        index = self.trees.index(on)
        assert index is not None
        tree = self.trees.of(index, way)
        assert tree is not None
        minor = target if isinstance(target, int) else tree.branches[target].minor
        every = queues.classes(self.trees.netlink, tree.link)
        return next(counted(q) for q in every if q.handle & 0xFFFF == minor)

    def receive(self, at: Handle, *, count: int = 100, size: int = 1000) -> None:
        """Packets from the peer to a socket of a cgroup that only listens; all have come when this returns."""
        with self.started(at, RECEIVE.format(count=count)) as listening:
            assert listening.stdout is not None
            assert listening.stdout.readline() == "ready\n"
            send = SEND.format(count=count, size=size, here="192.0.2.2", there="192.0.2.1")
            self.netns.run(sys.executable, "-I", "-S", "-c", send, at=self.netns.peer)
        assert listening.returncode == 0

    def _enter(self, at: Handle | None) -> str:
        in_use = self.work.hierarchies.in_use() if at else ()
        files = [self.work.hierarchies.file(c, at.path, "cgroup.procs") for c in in_use if at]
        return "".join(f"open({f!r}, 'w').write('0')\n" for f in files)

    def picture(self) -> str:
        """What an operator sees, but for what is merely counted."""
        seen = "".join(self.netns.run("tc", what, "show", "dev", "eth0") for what in ("qdisc", "class", "filter"))
        return re.sub(r"direct_packets_stat \d+", "", seen)
