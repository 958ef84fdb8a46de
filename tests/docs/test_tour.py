"""The README's tour and docs/tour.md, typed as a new user would, against the running stack."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import CLONE, blocks, commands

pytestmark = [pytest.mark.host, pytest.mark.timeout(600)]


class Shell:
    """A terminal next to `j10ce-qos up`, with the command on its PATH."""

    def __init__(self, box: Path) -> None:
        self.box = box
        (box / "bin").mkdir()
        shim = box / "bin/j10ce-qos"
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m j10ce.cli.main "$@"\n')
        shim.chmod(0o755)
        self.environ = {
            **os.environ,
            "PATH": f"{box}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(CLONE / "src"),
            "J10CE_RUN_DIR": f"{box}/run",
            "J10CE_STATE_DIR": f"{box}/state",
            "J10CE_CONFIG_DIR": f"{box}/etc",
            "J10CE_TOP": f"j10cedocs{os.getpid()}",
        }
        self.background: list[subprocess.Popen[str]] = []

    def type(self, line: str, port: int) -> subprocess.CompletedProcess[str] | None:
        line = line.replace("8080", str(port)).replace("/tmp/", f"{self.box}/")
        if line.startswith("kill %"):
            self.end()
            return None
        if line.endswith("&"):
            self.begin(line.removesuffix("&"))
            return None
        return subprocess.run(
            ["bash", "-c", line], cwd=CLONE, env=self.environ, capture_output=True, text=True, timeout=120, check=False
        )

    def begin(self, line: str) -> None:
        """Start in the background and wait until it says that it was placed."""
        process = subprocess.Popen(
            ["bash", "-c", f"exec {line}"], cwd=CLONE, env=self.environ, stderr=subprocess.PIPE, text=True
        )
        self.background.append(process)
        assert process.stderr is not None
        assert "j10ce-qos run: default/" in process.stderr.readline()

    def end(self) -> None:
        for process in self.background:
            process.terminate()
            process.communicate(timeout=150)
        self.background.clear()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    listen = f"127.0.0.1:{free_port()}"
    up = subprocess.Popen(
        ["j10ce-qos", "up", "--listen", listen], cwd=CLONE, env=shell.environ, stdout=subprocess.PIPE, text=True
    )
    try:
        assert up.stdout is not None
        output = ""
        while "Next, in another terminal" not in output:
            line = up.stdout.readline()
            assert line, f"up ended: {output}"
            output += line
        yield shell
    finally:
        shell.end()
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=150)
    assert up.returncode == 0
    assert not list(Path("/sys/fs/cgroup").glob(f"*/{shell.environ['J10CE_TOP']}*")), "Ctrl-C leaves nothing behind"


@pytest.mark.parametrize("page", ["README.md", "docs/tour.md"])
def test_every_command_of_the_tour_works(page: str, shell: Shell) -> None:
    lines = [c for b in blocks() if b.page == page and b.language == "console" for c in commands(b)]
    assert len(lines) >= 9
    port = free_port()
    for line in lines:
        done = shell.type(line, port)
        assert done is None or done.returncode in ((0, 1) if " diff " in line else (0,)), f"{line}\n{done}"
        assert done is None or done.stdout.strip() or " diff " in line, f"{line} says nothing"
        if line == "j10ce-qos revert":
            assert done is not None
            assert [kept for kept in done.stdout.splitlines() if "still holds" in kept and "/agent " not in kept] == []


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
