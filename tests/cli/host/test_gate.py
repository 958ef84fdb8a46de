"""`run_placed`: the gate, the signals, the exit codes. Real forks; the agent is the `place` callback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from j10ce.cli.host.gate import run_placed
from j10ce.errors import Denied


def in_child(code: str, *args: str, **options: object) -> subprocess.Popen[str]:
    """`run_placed` in a process of its own: it takes over signals."""
    start = [sys.executable, "-c", "import sys; from j10ce.cli.host.gate import run_placed\n" + code, *args]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    return subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ, **options)


@pytest.mark.parametrize(
    ("command", "want"),
    [
        pytest.param(["true"], 0, id="success"),
        pytest.param(["sh", "-c", "exit 42"], 42, id="the command's own code"),
        pytest.param(["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM, id="128 + the signal that ended it"),
        pytest.param(["/nonexistent/command"], 127, id="not found"),
        pytest.param(["/etc/passwd"], 126, id="not executable"),
    ],
)
def test_the_exit_code_is_what_a_shell_expects(command: list[str], want: int) -> None:
    child = in_child("sys.exit(run_placed(sys.argv[1:], lambda pid: None))", *command)
    child.communicate()
    assert child.returncode == want


def test_the_command_starts_only_after_it_was_placed(tmp_path: Path) -> None:
    order = tmp_path / "order"
    code = """
def place(pid):
    import pathlib
    exe = pathlib.Path(f"/proc/{pid}/exe").resolve().name
    pathlib.Path(sys.argv[1]).write_text(f"placed while {exe}\\n")
sys.exit(run_placed(["sh", "-c", f"echo started >> {sys.argv[1]}"], place))
"""
    child = in_child(code, str(order))
    child.communicate()
    placed, started = order.read_text().splitlines()
    assert started == "started"
    assert "python" in placed


def test_a_refused_command_never_starts(tmp_path: Path) -> None:
    witness = tmp_path / "started"

    def refuse(pid: int) -> None:
        raise Denied("no room")

    with pytest.raises(Denied, match="no room"):
        run_placed(["touch", str(witness)], refuse)
    assert not witness.exists()
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []), "signals stay as they were"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command(number: signal.Signals) -> None:
    """It waits for a blocked one: a handler of Python's may run late, with nobody to wake whoever pauses after it."""
    block = f"import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}])"
    script = f"{block}; print('ready', flush=True); signal.sigwait([{int(number)}]); raise SystemExit(7)"
    run = "sys.exit(run_placed(sys.argv[1:], lambda pid: None))"
    child = in_child(run, sys.executable, "-S", "-c", script)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(number)
    child.communicate(timeout=100)
    assert child.returncode == 7


def test_standard_streams_are_the_caller_s() -> None:
    child = in_child(
        "sys.exit(run_placed(['cat'], lambda pid: None))",
        stdin=subprocess.PIPE,
    )
    out, _ = child.communicate("through and through")
    assert out == "through and through"


@pytest.mark.parametrize(("given", "has"), [({}, ""), ({"LC_CTYPE": "C.UTF-8"}, "LC_CTYPE=C.UTF-8\n")])
def test_nothing_is_added_to_the_environment_of_the_command(given: dict[str, str], has: str) -> None:
    """In the C locale the interpreter sets LC_CTYPE for itself."""
    code = "import sys; from j10ce.cli.host.gate import run_placed; run_placed(['/usr/bin/env'], lambda pid: None)"
    path = f"PYTHONPATH={Path(__file__).parents[3] / 'src'}"
    environ = {"PYTHONPATH": path.removeprefix("PYTHONPATH="), **given}
    ended = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert ended.stdout.replace(f"{path}\n", "") == has
