"""A control plane as an operator sets it up: an authority, a certificate, an auth file, a manager over TLS."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx

SOURCES = Path(__file__).resolve().parents[2] / "src"
BASE = "/apis/j10ce.io/v1alpha1"
ENV = {**os.environ, "PYTHONPATH": str(SOURCES)}
ROLES = ("viewer", "editor", "node", "admin", "bootstrap")


def command(*argv: str, stdin: str = "") -> str:
    """What a `j10ce-qos` command prints; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "j10ce.cli.main", *argv],
        env=ENV,
        input=stdin,
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def founded(folder: Path) -> Path:
    """An authority, a server's certificate and an auth file with a token of every role, as the commands make them."""
    pki = folder / "pki"
    command("certs", "init", "--dir", str(pki))
    command("certs", "server", "--dir", str(pki), "--host", "localhost", "--host", "127.0.0.1")
    tokens = {}
    for role in ROLES:
        node = ("--node", "n1") if role == "node" else ()
        tokens[role] = command("token", "create", role, "--role", role, "--auth", f"{pki}/auth.yaml", *node)
    (folder / "tokens").write_text(json.dumps(tokens))
    return folder


class Plane:
    """One control plane on a copy of what `founded` made; `tokens` by role, of which the node's speaks for n1."""

    def __init__(self, foundation: Path, folder: Path) -> None:
        self.folder, self.pki = folder, folder / "pki"
        self.auth, self.audit = self.pki / "auth.yaml", folder / "audit.log"
        shutil.copytree(foundation / "pki", self.pki)
        self.tokens: dict[str, str] = json.loads((foundation / "tokens").read_text())

    def create(self, role: str, name: str) -> str:
        """Another token in the auth file."""
        return command("token", "create", name, "--role", role, "--auth", str(self.auth))

    @contextmanager
    def manager(self, *more: str, store: str = "") -> Iterator[Manager]:
        """A manager that said that it is ready; what it logs is in `manager.log`."""
        at = f"{self.folder}/notify-{len(list(self.folder.glob('notify-*')))}"
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify,
            (self.folder / "manager.log").open("ab") as log,
        ):
            notify.bind(at)
            notify.settimeout(0.2)
            port = free_port()
            argv = ["--store", store or f"sqlite://{self.folder}/objects.db", "--listen", f"127.0.0.1:{port}"]
            argv += ["--tls-cert", f"{self.pki}/server.crt", "--tls-key", f"{self.pki}/server.key"]
            argv += ["--auth", str(self.auth), "--audit-log", str(self.audit), *more]
            process = subprocess.Popen(
                [sys.executable, "-m", "j10ce.manager.main", *argv], env={**ENV, "NOTIFY_SOCKET": at}, stderr=log
            )
            try:
                self._until_ready(process, notify)
                yield Manager(self, process, port)
            finally:
                process.kill()
                process.wait()

    def _until_ready(self, process: subprocess.Popen[bytes], notify: socket.socket) -> None:
        while process.poll() is None:
            try:
                assert notify.recv(100) == b"READY=1"
            except TimeoutError:
                continue
            return
        raise AssertionError((self.folder / "manager.log").read_text())

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.pki / "ca.crt")

    def audited(self) -> list[dict[str, object]]:
        """The audit log."""
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


class Manager:
    def __init__(self, plane: Plane, process: subprocess.Popen[bytes], port: int) -> None:
        self.plane, self.process = plane, process
        self.server = f"https://127.0.0.1:{port}"
        self.port = port

    def client(self, token: str = "") -> httpx.Client:
        """As a role of the auth file, or with a token."""
        token = self.plane.tokens.get(token, token)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.server, headers=headers, verify=self.plane.trust(), timeout=100)

    def admin(self, *argv: str) -> str:
        """A `j10ce-qos` command with the admin's token."""
        file = self.plane.folder / "admin.token"
        file.write_text(self.plane.tokens["admin"])
        ca = str(self.plane.pki / "ca.crt")
        return command("--server", self.server, "--token-file", str(file), "--ca-file", ca, *argv)

    def hang_up(self) -> None:
        self.process.send_signal(signal.SIGHUP)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def obj(kind: str, name: str, **spec: object) -> dict[str, object]:
    return {"apiVersion": "j10ce.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def hold(name: str, **more: object) -> dict[str, object]:
    target = {"target": "workload/default/web", "knobs": ["cpu.max"], "expires": "2099-01-01T00:00:00Z", "why": "test"}
    return obj("Hold", name, **{**target, **more})
