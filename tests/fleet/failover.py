"""Forced fail-overs under write load: who leads is killed or hangs, again and again, and every write counts.

Writers change their own objects one revision after another through whichever manager answers. Their answers are
written, what they could not learn is read again; so a write that was acknowledged and is gone shows at once.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from j10ce.cli.client import Client
from j10ce.errors import Conflict, QosError
from tests.etcd.cluster import Cluster, running
from tests.fleet.managers import BASE, Manager, Managers, eventually, free_port, policies, reservation

TOKEN = "a-token-of-this-test-and-of-no-other"
HOLDS = f"{BASE}/namespaces/soak/holds"
PAUSE_S = 0.02  # between two writes of a writer: load, not a benchmark


class Measured(NamedTuple):
    """One fail-over: seconds until a write was acknowledged again, and until the next leader did its work."""

    how: str
    written_s: float
    led_s: float


class Control:
    """Three etcd members and three managers on loopback, with writers."""

    def __init__(self, folder: Path, etcd: Cluster, *, writers: int = 4) -> None:
        (folder / "token").write_text(TOKEN)
        (folder / "token").chmod(0o600)
        flags = ["--store", etcd.url, "--token-file", str(folder / "token")]
        self.etcd = etcd
        self.managers = Managers(
            [Manager(f"cp-{n}", folder / f"cp-{n}", f"127.0.0.1:{free_port()}", flags, token=TOKEN) for n in range(3)]
        )
        self.writers = [Writer(n, self.client()) for n in range(writers)]

    def client(self) -> Client:
        urls = [member.url for member in self.managers.members]
        random.shuffle(urls)
        return Client(",".join(urls), token=TOKEN, timeout=5.0)

    def fail_over(self, how: str) -> Measured:
        """Take the leader away, measure, and bring it back as a follower."""
        leader = self.managers.leader()
        began, written = time.monotonic(), [writer.acknowledged for writer in self.writers]
        leader.signal(signal.SIGKILL if "kill" in how else signal.SIGSTOP)
        if "etcd" in how:
            member = self.etcd.leader()
            self.etcd.kill(member)
            self.etcd.start(member)
        probing = Probe(self.client(), f"probe-{began:.3f}".replace(".", "-"))
        assert eventually(lambda: any(w.acknowledged > n for w, n in zip(self.writers, written, strict=True)))
        written_s = time.monotonic() - began
        assert eventually(probing.judged), "nobody leads:\n" + "\n".join(m.log() for m in self.managers.members)
        led_s = time.monotonic() - began
        self._bring_back(leader, how)
        return Measured(how, written_s, led_s)

    def _bring_back(self, leader: Manager, how: str) -> None:
        if "kill" in how:
            leader.kill()
            leader.launch()
        else:
            leader.signal(signal.SIGCONT)
        leader.wait()
        assert eventually(lambda: sum(m.leads for m in self.managers.members) == 1)

    def settle(self) -> int:
        """End the writers; how many writes were acknowledged. Raises what any of them found missing."""
        for writer in self.writers:
            writer.stop.set()
        for writer in self.writers:
            writer.join()
        fresh = self.client()
        for writer in self.writers:
            writer.check(fresh.get(writer.path))
        return sum(writer.acknowledged for writer in self.writers)


class Probe:
    """A policy that only a leader gives a status."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name, self._made = client, name, False

    def judged(self) -> bool:
        if not self._made:
            with suppress(Conflict):
                self._client.post(policies("soak"), reservation(self._name, "soak", cpu="1m"))
            self._made = True
        return bool(self._client.get(f"{policies('soak')}/{self._name}").get("status", {}).get("conditions"))


class Writer(threading.Thread):
    """Counts up in one object. `acknowledged` is the number of the last write that was acknowledged."""

    def __init__(self, number: int, client: Client) -> None:
        super().__init__(daemon=True)
        self.path = f"{HOLDS}/counter-{number}"
        self.acknowledged, self.tried = -1, -1
        self.lost = ""
        self.stop = threading.Event()
        self._name, self._client = f"counter-{number}", client

    def run(self) -> None:
        held = self._create()
        while not self.stop.wait(PAUSE_S) and not self.lost:
            self.tried = int(held["spec"]["why"]) + 1
            held["spec"]["why"] = str(self.tried)
            try:
                held = self._client.put(self.path, held)
                self.acknowledged = self.tried
            except QosError:
                held = self._read()
                self._note(held)

    def check(self, held: Any) -> None:
        assert not self.lost, self.lost
        self._note(held)
        assert not self.lost, self.lost

    def _note(self, held: Any) -> None:
        """What is stored is what was acknowledged last, or what was tried after it."""
        number = int(held["spec"]["why"])
        if not self.acknowledged <= number <= self.tried:
            self.lost = f"{self._name} is at {number}; {self.acknowledged} was acknowledged, {self.tried} tried"
        self.acknowledged = max(self.acknowledged, number)

    def _create(self) -> Any:
        spec = {"target": "workload/soak/x", "knobs": ["cpu.weight"], "expires": "2100-01-01T00:00:00Z", "why": "0"}
        meta = {"name": self._name, "namespace": "soak"}
        wanted = {"apiVersion": "j10ce.io/v1alpha1", "kind": "Hold", "metadata": meta, "spec": spec}
        while True:
            with suppress(QosError):
                self._client.post(HOLDS, wanted)
            with suppress(QosError):
                held = self._client.get(self.path)
                self.acknowledged = self.tried = 0
                return held

    def _read(self) -> Any:
        while True:
            try:
                return self._client.get(self.path)
            except QosError:
                time.sleep(PAUSE_S)


@contextmanager
def under_load(folder: Path, *, writers: int = 4) -> Iterator[Control]:
    """Everything runs and writes; nothing of it is left when the block ends."""
    with running(folder / "etcd") as etcd:
        control = Control(folder, etcd, writers=writers)
        try:
            control.managers.start()
            for writer in control.writers:
                writer.start()
            assert eventually(lambda: all(writer.acknowledged > 0 for writer in control.writers))
            yield control
        finally:
            for writer in control.writers:
                writer.stop.set()
            control.managers.stop()
