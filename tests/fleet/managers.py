"""Real managers of one control plane: started, killed, paused, asked who leads; and a client that knows them all."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from j10ce.cli.client import Client
from j10ce.errors import QosError

PATIENCE_S = 150.0  # a wait that ends by an event, never by this
BASE = "/apis/j10ce.io/v1alpha1"


def eventually(claim: Callable[[], object], seconds: float = PATIENCE_S) -> bool:
    """Whether it becomes true before a deadline that only broken code reaches."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        with suppress(QosError, OSError):
            if claim():
                return True
        time.sleep(0.02)
    return False


class Manager:
    """One process. `inside` are the words before its command; `secure` are the flags of its TLS."""

    def __init__(
        self,
        name: str,
        folder: Path,
        address: str,
        flags: Sequence[str],
        *,
        inside: Sequence[str] = (),
        ca: str = "",
        token: str = "",
    ) -> None:
        self.name, self.folder = name, folder
        self.url = f"{'https' if ca else 'http'}://{address}"
        self.client = Client(self.url, token=token, ca=ca, timeout=10.0)
        self._command = [
            *inside, sys.executable, "-m", "j10ce.manager.main", "--identity", name, "--listen", address, *flags,
        ]  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        sources = str(Path(__file__).resolve().parents[2] / "src")
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command, env={**os.environ, "PYTHONPATH": sources}, stdout=log, stderr=log
            )

    def wait(self) -> None:
        assert eventually(lambda: self.gone or self.ready), self.log()
        assert not self.gone, self.log()

    @property
    def gone(self) -> bool:
        return self.process is None or self.process.poll() is not None

    @property
    def ready(self) -> bool:
        return self.client.get("/readyz") == "ok\n"

    @property
    def leads(self) -> bool:
        return not self.gone and "role: leader" in str(self.client.get("/readyz", verbose="1"))

    def signal(self, how: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(how)

    def kill(self) -> None:
        """As a power cut would: no goodbye."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        assert self.process is not None
        return self.process.wait(PATIENCE_S)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-4000:]


class Managers:
    def __init__(self, members: Sequence[Manager]) -> None:
        self.members = tuple(members)

    def start(self) -> None:
        """All of them at once."""
        for member in self.members:
            member.launch()
        for member in self.members:
            member.wait()

    def stop(self) -> None:
        for member in self.members:
            member.kill()

    @property
    def living(self) -> list[Manager]:
        return [member for member in self.members if not member.gone]

    @property
    def urls(self) -> str:
        return ",".join(member.url for member in self.members)

    def leader(self, *, but: Manager | None = None) -> Manager:
        """Waits for an election to end; `but` may believe what it likes."""
        collected: list[Manager] = []

        def one_leads() -> bool:
            for member in self.living:
                with suppress(QosError, OSError):
                    if member is not but and member.leads:
                        collected.append(member)
            return bool(collected)

        assert eventually(one_leads), "\n".join(member.log() for member in self.members)
        return collected[0]

    def followers(self) -> list[Manager]:
        leader = self.leader()
        return [member for member in self.living if member is not leader]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def reservation(name: str, namespace: str = "default", *, labels: dict[str, str] | None = None, **spec: Any) -> Any:
    minimum = {name: spec.pop(name) for name in ("cpu", "memory") if name in spec}
    return {
        "apiVersion": "j10ce.io/v1alpha1",
        "kind": "MinimalReservationPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels or {"app": name}}, "minimum": minimum, **spec},
    }


def policies(namespace: str = "default") -> str:
    return f"{BASE}/namespaces/{namespace}/minimalreservationpolicies"
