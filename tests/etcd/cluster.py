"""Real etcd processes that can be killed, paused, restarted and asked who leads.

with running(folder) as cluster:          # three members on free loopback ports
    cluster.kill(cluster.leader())
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab.debian import program

PATIENCE_S = 150.0  # a wait that ends by an event, never by this
SERVER_NAMES = ("etcd-0", "etcd-1", "etcd-2", "etcd-3", "etcd-4")


class Host(NamedTuple):
    """Where a member runs: its address, and the words before its command (`nsenter --net=…`)."""

    address: str = "127.0.0.1"
    inside: tuple[str, ...] = ()


class Member(NamedTuple):
    name: str
    folder: Path
    host: Host
    client: str  # address:port
    peer: str


class Cluster:
    """`flags` go to every member; `tls` is how this process talks to members that serve TLS."""

    def __init__(
        self, folder: Path, hosts: Sequence[Host], *, flags: Sequence[str] = (), tls: ssl.SSLContext | None = None
    ) -> None:
        self._flags, self._tls = tuple(flags), tls
        self._scheme = "https" if tls else "http"
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        ports = iter(free_ports(2 * len(hosts)))
        self.members = tuple(
            Member(name, folder / name, host, f"{host.address}:{next(ports)}", f"{host.address}:{next(ports)}")
            for name, host in zip(SERVER_NAMES, hosts, strict=False)
        )

    @property
    def endpoints(self) -> tuple[str, ...]:
        return tuple(member.client for member in self.members)

    @property
    def url(self) -> str:
        """As `--store` takes it."""
        return f"{'etcds' if self._tls else 'etcd'}://{','.join(self.endpoints)}"

    def start(self, *numbers: int) -> None:
        """All members, or those; returns once each answers."""
        for n in numbers or range(len(self.members)):
            self._processes[n] = self._launch(self.members[n])
        for n in numbers or range(len(self.members)):
            self.wait(n)

    def pid(self, n: int) -> int:
        return self._processes[n].pid

    def kill(self, n: int) -> None:
        """As a power cut would: no goodbye."""
        process = self._processes.pop(n)
        process.kill()
        process.wait()

    def restart(self, n: int) -> None:
        if n in self._processes:
            self.kill(n)
        self.start(n)

    def pause(self, n: int) -> None:
        """It keeps its connections and answers nothing, from the moment that this returns."""
        self._processes[n].send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid(n), os.WSTOPPED)  # until one of its threads takes the signal, others go on

    def resume(self, n: int) -> None:
        self._processes[n].send_signal(signal.SIGCONT)

    def stop(self) -> None:
        for n in tuple(self._processes):
            self.kill(n)

    def leader(self) -> int:
        """The number of the member that leads; waits for an election to end. Members that do not answer are passed."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for n in self._processes:
                status = self.ask(n, "/v3/maintenance/status")
                if status and status.get("leader", "0") == status["header"]["member_id"]:
                    return n
            time.sleep(0.05)
        raise TimeoutError("no etcd member leads")

    def wait(self, n: int) -> None:
        """Until the member answers as part of a cluster that has a leader."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self._processes[n].poll() is not None:
                raise RuntimeError(f"{self.members[n].name} ended: {self.log(n)[-2000:]}")
            if (self.ask(n, "/v3/maintenance/status") or {}).get("leader", "0") != "0":
                return
            time.sleep(0.05)
        raise TimeoutError(f"{self.members[n].name} does not answer: {self.log(n)[-2000:]}")

    def log(self, n: int) -> str:
        return (self.members[n].folder / "log").read_text(errors="replace")

    def ask(self, n: int, path: str, body: Any = None) -> Any:
        """A call of the member's JSON gateway; None when it does not answer."""
        url = f"{self._scheme}://{self.members[n].client}{path}"
        request = urllib.request.Request(url, json.dumps(body or {}).encode(), {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=1.0, context=self._tls) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return None

    def _launch(self, member: Member) -> subprocess.Popen[bytes]:
        member.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        client, peer = f"{self._scheme}://{member.client}", f"http://{member.peer}"
        everyone = ",".join(f"{other.name}=http://{other.peer}" for other in self.members)
        options = {
            "name": member.name,
            "data-dir": member.folder / "data",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": everyone,
            "heartbeat-interval": 50,
            "election-timeout": 500,
            "log-level": "warn",
            "logger": "zap",
            "log-outputs": "stderr",
        }
        argv: list[str | Path] = [
            *member.host.inside,
            program("etcd"),
            *(f"--{key}={value}" for key, value in options.items()),
        ]
        with (member.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*argv, *self._flags],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={"PATH": os.environ["PATH"]},
            )


@contextmanager
def running(
    folder: Path, count: int = 3, *, flags: Sequence[str] = (), tls: ssl.SSLContext | None = None
) -> Iterator[Cluster]:
    """Members on free loopback ports, all answering; none is left when the block ends."""
    cluster = Cluster(folder, [Host()] * count, flags=flags, tls=tls)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def free_ports(count: int) -> list[int]:
    """Taken together, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for bound in sockets:
            bound.bind(("127.0.0.1", 0))
        return [bound.getsockname()[1] for bound in sockets]
    finally:
        for bound in sockets:
            bound.close()
