"""Ten thousand agents watch their documents: how long until a change has reached all, and what an idle watcher costs.

The watchers are raw sockets on one epoll in this process, so that on two CPUs the manager has one for itself.
"""

from __future__ import annotations

import json
import os
import resource
import select
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.facts import machine_facts
from j10ce.bench.figures import percentile

SOURCES = Path(__file__).resolve().parent.parent / "src"
BASE = "/apis/j10ce.io/v1alpha1"
POLICIES = f"{BASE}/namespaces/bench/minimalreservationpolicies"
ROUNDS, TOGETHER, ALL_S = 5, 200, 60.0


def main() -> int:
    machine_facts()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    many, few = (int(os.environ.get(f"J10CE_BENCH_{n}", d)) for n, d in (("WATCHERS", 10000), ("TLS_WATCHERS", 2000)))
    missed = [
        run("plain", many, secure=False, most_kib=50),
        run("100 policies", many, policies=100, secure=False, most_kib=50),
        run("TLS", few, secure=True, most_kib=100),
    ]
    return int(any(missed))


def run(title: str, count: int, *, policies: int = 1, secure: bool, most_kib: float) -> bool:
    """Whether a goal was missed."""
    with tempfile.TemporaryDirectory(prefix="j10ce-bench-fanout-") as folder:
        with manager(Path(folder), secure=secure) as (child, port, token):
            fleet = Fleet(port, token, Path(folder) / "cert.pem" if secure else None)
            for n in range(policies - 1):
                fleet.post(f"beside-{n}", 1)
            fleet.post("db", 1)
            fleet.connect(1)  # what only the first connection costs is not an idle watcher's
            before = resident_kib(child)
            fleet.connect(count)
            idle = (resident_kib(child) - before) / count
            began_s, began_bytes = cpu_s(child), fleet.received
            spans = [s for n in range(ROUNDS) for s in fleet.change(1001 + n)]
            each = ROUNDS * count
            cpu_us = (cpu_s(child) - began_s) / each * 1e6
            sent = (fleet.received - began_bytes) / each
    spans.sort()
    p50, p99 = (percentile(spans, share) for share in (0.5, 0.99))
    figures = f"p50 {p50:.3f} s, p99 {p99:.3f} s, max {spans[-1]:.3f} s"
    print(f"{title:<12}{count:>6} watchers, {ROUNDS} changes: {figures} (goal p99 1 s); ", end="")
    print(f"{cpu_us:.0f} us of CPU and {sent:.0f} bytes per watcher and change; ", end="")
    print(f"{idle:.1f} KiB per idle watcher (goal {most_kib:g})", flush=True)
    return p99 > 1 or idle > most_kib


@contextmanager
def manager(folder: Path, *, secure: bool) -> Iterator[tuple[subprocess.Popen[bytes], int, str]]:
    kubeconfig = folder / "kubeconfig"
    argv = [sys.executable, "-m", "j10ce.manager.main", "--store", "memory:", "--listen", "127.0.0.1:0"]
    argv += ["--token-file", f"{folder}/token", "--kubeconfig", str(kubeconfig)]
    if secure:
        certify(folder)
        argv += ["--tls-cert", f"{folder}/cert.pem", "--tls-key", f"{folder}/key.pem"]
    env = {**os.environ, "PYTHONPATH": str(SOURCES)}
    with subprocess.Popen(argv, env=env, stderr=subprocess.DEVNULL) as child:
        while not kubeconfig.exists() and child.poll() is None:
            time.sleep(0.05)
        try:
            body = json.loads(kubeconfig.read_text())
            port = int(body["clusters"][0]["cluster"]["server"].rpartition(":")[2])
            yield child, port, body["users"][0]["user"]["token"]
        finally:
            child.kill()


def certify(folder: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip


def resident_kib(child: subprocess.Popen[bytes]) -> int:
    time.sleep(2)  # what the connections left behind is collected
    status = Path(f"/proc/{child.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def cpu_s(child: subprocess.Popen[bytes]) -> float:
    """What the manager has used of the CPUs: on a loaded machine that tells more than the time that passed."""
    fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Watcher:
    """One open watch: what has arrived of its latest line."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.tail = b""
        self.received = 0

    def got(self, marker: bytes) -> bool:
        """Take in what is there; whether a whole line with `marker` is among it."""
        while True:
            try:
                data = self.sock.recv(1 << 16)
            except (BlockingIOError, ssl.SSLWantReadError):
                break
            if not data:
                raise ConnectionError("the manager closed a watch")
            self.tail += data
            self.received += len(data)
        if self.tail.endswith(b"\n\r\n"):
            complete, self.tail = marker in self.tail, b""
            return complete
        return False


class Fleet:
    def __init__(self, port: int, token: str, ca: Path | None) -> None:
        self._port, self._ca = port, ca
        self._head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        self._watchers: dict[int, Watcher] = {}
        self._poll = select.epoll()
        self._context = ssl.create_default_context(cafile=ca) if ca else None

    @property
    def received(self) -> int:
        return sum(watcher.received for watcher in self._watchers.values())

    def connect(self, count: int) -> None:
        """Open so many watches more, and wait for the first document of each."""
        for begin in range(0, count, TOGETHER):
            fresh: set[int] = set()
            for _ in range(min(TOGETHER, count - begin)):
                sock = self._open()
                name = f"node-{len(self._watchers)}"
                sock.sendall(f"GET {BASE}/nodedocuments/{name}?watch=1&changes=1 HTTP/1.1\r\n{self._head}\r\n".encode())
                sock.setblocking(False)
                self._watchers[sock.fileno()] = Watcher(sock)
                self._poll.register(sock.fileno(), select.EPOLLIN)
                fresh.add(sock.fileno())
            self._await(fresh, b'"type":"ADDED"')

    def change(self, millicores: int) -> list[float]:
        """Seconds from the request that changes a policy until each watcher has its document."""
        began = time.perf_counter()
        self._write("PUT", f"{POLICIES}/db", "db", millicores)
        return [at - began for at in self._await(set(self._watchers), f'"{millicores}m"'.encode())]

    def post(self, name: str, millicores: int) -> None:
        self._write("POST", POLICIES, name, millicores)

    def _write(self, method: str, path: str, name: str, millicores: int) -> None:
        meta = {"name": name, "namespace": "bench"}
        spec = {"minimum": {"cpu": f"{millicores}m", "memory": "1Gi"}}
        body = {"apiVersion": "j10ce.io/v1alpha1", "kind": "MinimalReservationPolicy", "metadata": meta, "spec": spec}
        data = json.dumps(body).encode()
        content = f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\nConnection: close\r\n"
        sock = self._open()
        sock.sendall(f"{method} {path} HTTP/1.1\r\n{self._head}{content}\r\n".encode() + data)
        if (answer := sock.recv(1 << 16))[9:12] not in (b"200", b"201"):
            raise RuntimeError(f"{method} {path}: {answer!r}")
        sock.close()

    def _open(self) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self._port), timeout=ALL_S)
        return self._context.wrap_socket(sock, server_hostname="127.0.0.1") if self._context else sock

    def _await(self, waiting: set[int], marker: bytes) -> list[float]:
        """When each of these watchers had a line with the marker."""
        times: list[float] = []
        until = time.perf_counter() + ALL_S
        while waiting:
            if time.perf_counter() > until:
                raise TimeoutError(f"{len(waiting)} watchers got nothing within {ALL_S:g} s")
            for number, _ in self._poll.poll(1):
                if self._watchers[number].got(marker) and number in waiting:
                    times.append(time.perf_counter())
                    waiting.discard(number)
        return times


if __name__ == "__main__":
    sys.exit(main())
