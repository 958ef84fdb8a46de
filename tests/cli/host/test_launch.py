"""How `up` and `run` wait for a process of ours: what they say meanwhile, and that Ctrl-C ends it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from j10ce.cli.dirs import Dirs
from j10ce.cli.host import launch
from j10ce.cli.host.up import _address
from j10ce.cli.main import cli
from j10ce.errors import Busy, Denied, Invalid, QosError, Unreachable
from tests.cli.session import eventually

NEVER_READY = "import time; print('j10ce-qos-agent: the disk of /x is full', flush=True); time.sleep(1000)"
FAILS = "import sys; print('j10ce-qos-agent: the disk of /x is full'); sys.exit(1)"


@pytest.fixture
def dirs(tmp_path: Path) -> Dirs:
    return Dirs(tmp_path / "run", tmp_path / "state", tmp_path / "etc")


def start(dirs: Dirs, code: str) -> None:
    launch.start([sys.executable, "-c", code], dirs, "agent")


@pytest.fixture(autouse=True)
def mask() -> Iterator[None]:
    """`up` blocks signals for good."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


WAITS = """
import signal, sys
from pathlib import Path
from j10ce.cli.dirs import Dirs
from j10ce.cli.host import launch
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # as `up` and `run` do
child = "import os, signal, time; os.kill(os.getppid(), signal.SIGINT); time.sleep(1000)"
try:
    launch.start([sys.executable, "-c", child], Dirs(*map(Path, sys.argv[1:])), "agent")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_the_wait_for_a_process_that_does_not_become_ready(dirs: Dirs) -> None:
    """In a process of its own: a signal goes to any thread that does not block it."""
    folders = (str(dirs.run), str(dirs.state), str(dirs.config))
    ended = subprocess.run([sys.executable, "-c", WAITS, *folders], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted\n", "")


UP = """
import signal, subprocess, sys
from pathlib import Path
from j10ce.cli.dirs import Dirs
from j10ce.cli.host import launch
from j10ce.cli.host.up import Stack
from j10ce.cli.peers import Peers
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGCHLD})  # as `up` does
dirs = Dirs(*map(Path, sys.argv[1:]))
ready = "import os, socket, time; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); " \
    "s.sendto(b'READY=1', os.environ['NOTIFY_SOCKET']); time.sleep(1000)"
interrupts = "import os, signal, time; os.kill(os.getppid(), signal.SIGINT); time.sleep(1000)"
begin = lambda code, name: launch.start([sys.executable, "-c", code], dirs, name)
peers = Peers()
peers.dirs = dirs
stack = Stack(peers, "127.0.0.1:0")
stack._manager = lambda: begin(ready, "manager")
stack._agent = lambda: begin(interrupts, "agent")
"""
STARTS = """
try:
    stack.start()
except KeyboardInterrupt:
    print("interrupted;", stack.manager.poll(), dirs.token.exists())
"""
MENDS = """
stack.manager, stack.agent = stack._manager(), subprocess.Popen(["true"])
stack.agent.wait()
stack.mend()
print(signal.SIGINT in signal.sigpending(), stack.manager.poll())
stack.manager.kill()
"""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param(STARTS, "interrupted; -15 False\n", id="the manager ends, and its token goes"),
        pytest.param(
            MENDS,
            "the agent ended with code 0, starting it again; see {run}/agent.log\nTrue None\n",
            id="while a child is started again, the stack goes on to stop as ever",
        ),
    ],
)
def test_ctrl_c_while_up_waits_for_the_agent_leaves_no_manager_behind(dirs: Dirs, script: str, said: str) -> None:
    folders = (str(dirs.run), str(dirs.state), str(dirs.config))
    ended = subprocess.run([sys.executable, "-c", UP + script, *folders], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, said.format(run=dirs.run), "")


def test_what_does_not_become_ready_is_reported_with_the_last_line_of_its_log(
    dirs: Dirs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    turns: list[object] = []

    def until_it_has_spoken(self: object) -> set[int]:
        assert eventually(lambda: (dirs.run / "agent.log").stat().st_size)
        turns.append(self)
        return set()

    monkeypatch.setattr(launch, "PATIENCE_S", launch.TURN_S)
    monkeypatch.setattr(launch, "START_S", 3 * launch.TURN_S)
    monkeypatch.setattr(launch.signal, "sigpending", lambda: until_it_has_spoken(None))
    with pytest.raises(Unreachable, match=r"did not become ready within 1 s: the disk of /x is full; see .*agent\.log"):
        start(dirs, NEVER_READY)
    assert turns
    assert "the agent is not ready yet: the disk of /x is full\n" in capsys.readouterr().err


def test_what_cannot_start_is_reported_in_its_own_words_without_its_name(dirs: Dirs) -> None:
    with pytest.raises(QosError, match=r"^the agent could not start: the disk of /x is full$"):
        start(dirs, FAILS)


@pytest.mark.parametrize(
    ("typed", "address"), [("7555", "127.0.0.1:7555"), ("127.0.0.1:1", "127.0.0.1:1"), ("[::1]:7", "[::1]:7")]
)
def test_up_listens_on_loopback_also_where_a_port_alone_is_named(typed: str, address: str) -> None:
    assert _address(typed) == address


@pytest.mark.parametrize("typed", ["", "here", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:x", "99999"])
def test_what_is_no_address_is_refused_before_anything_starts(typed: str) -> None:
    with pytest.raises(Invalid, match=r"--listen = .*: not an address; write it as 127\.0\.0\.1:7443, or 7443"):
        _address(typed)


def test_an_address_that_others_reach_is_denied() -> None:
    with pytest.raises(Denied, match="is not loopback"):
        _address("0.0.0.0:7443")


def test_a_taken_port_is_reported_at_once_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RUN", "STATE", "CONFIG"):
        monkeypatch.setenv(f"J10CE_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setattr(launch, "SYSTEM_RUN", tmp_path)  # nobody else runs here
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(cli, ["up", "--listen", str(port)], standalone_mode=False)
    assert isinstance(result.exception, Busy)
    assert f"port {port} of 127.0.0.1 is taken by another process: choose another with --listen" in str(
        result.exception
    )
    assert not (tmp_path / "run" / "token").exists()
