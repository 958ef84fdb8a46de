"""The manager as a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx

SOURCES = Path(__file__).resolve().parents[2] / "src"


class Running:
    """A manager that said that it is ready."""

    def __init__(self, process: subprocess.Popen[str], kubeconfig: Path) -> None:
        self.process, self.kubeconfig = process, kubeconfig
        body = json.loads(kubeconfig.read_text())
        self.server = body["clusters"][0]["cluster"]["server"]
        self.token = body["users"][0]["user"]["token"]

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.server, headers={"authorization": f"Bearer {self.token}"}, timeout=100)

    def watches(self) -> float:
        """How many are open, by its own metrics."""
        with self.client() as api:
            text = api.get("/metrics").text
        return float(re.search(r"^j10ce_manager_watchers (\S+)$", text, re.MULTILINE)[1])  # type: ignore[index]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(30)


def launch(folder: Path, *more: str, listen: str = "127.0.0.1:0", notify: str = "") -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "j10ce.manager.main", "--store", f"sqlite://{folder}/objects.db", "--listen", listen]
    argv += ["--token-file", f"{folder}/token", "--kubeconfig", f"{folder}/kubeconfig", *more]
    env = {**os.environ, "PYTHONPATH": str(SOURCES), "NOTIFY_SOCKET": notify}
    return subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True)


def start(folder: Path, *more: str) -> Running:
    """Returns once it is ready."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        (folder / "notify").unlink(missing_ok=True)
        notify.bind(str(folder / "notify"))
        notify.settimeout(60)
        process = launch(folder, *more, notify=str(folder / "notify"))
        assert notify.recv(100) == b"READY=1"
    return Running(process, folder / "kubeconfig")


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
