"""`run`: a command inside a managed cgroup before its first instruction.

The child waits at a gate until the agent has made its cgroup, written every knob and put it in; only then does it
become the command. The parent stays, passes signals on, and answers with the command's own exit code.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

from j10ce.cli.output import warn

# As env(1) and container runtimes have it.
FAILED, NOT_EXECUTABLE, NOT_FOUND, SIGNALLED = 125, 126, 127, 128
KILLED: Final = SIGNALLED + signal.SIGKILL

FORWARDED: Final = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM,
    signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGALRM,
)  # fmt: skip
SI_KERNEL: Final = 0x80  # the terminal sent it to the whole foreground group: the command has it already


def run_placed(command: Sequence[str], place: Callable[[int], None]) -> int:
    """Run `command` in the child that `place(pid)` has put where it belongs; the exit code a shell expects.

    When `place` raises, the command never starts and the error goes on to the caller.
    """
    waited = {*FORWARDED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        child, gate, fault = _fork(command, before)
        with open(fault, "rb", buffering=0) as reader:
            _admit(child, gate, place)
            return _fault(command, reader.read(16) or b"", child) or _attend(child, waited)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _fork(command: Sequence[str], mask: set[signal.Signals | int]) -> tuple[int, int, int]:
    """(child, the gate it waits at, where it tells why it could not start)."""
    gate_r, gate_w = os.pipe()
    fault_r, fault_w = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(gate_w)
        os.close(fault_r)
        _become(command, gate_r, fault_w, mask)
    os.close(gate_r)
    os.close(fault_w)
    return child, gate_w, fault_r


def _admit(child: int, gate: int, place: Callable[[int], None]) -> None:
    """Open the gate once the child is where it belongs; end it when it cannot be."""
    try:
        place(child)
        os.write(gate, b"!")
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        os.close(gate)


def _become(command: Sequence[str], gate: int, fault: int, mask: set[signal.Signals | int]) -> NoReturn:
    """In the child: wait for the gate, then exec. Nothing here may return or raise."""
    try:
        if not os.read(gate, 1):
            os._exit(FAILED)
        os.close(gate)
        os.set_inheritable(fault, False)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execvpe(command[0], list(command), _environ())  # noqa: S606 becoming the user's command is the point
    except OSError as e:
        os.write(fault, str(e.errno or errno.EIO).encode())
    finally:
        os._exit(FAILED)


def _environ() -> dict[str, str]:
    """What we were started with: in the C locale the interpreter adds LC_CTYPE to its own (PEP 538)."""
    given = Path("/proc/self/environ").read_bytes().split(b"\0")
    added = not any(entry.startswith(b"LC_CTYPE=") for entry in given)
    return {name: value for name, value in os.environ.items() if not (added and name == "LC_CTYPE")}


def _fault(command: Sequence[str], error: bytes, child: int) -> int:
    """0 once the command runs; else why it could not, said as a shell does."""
    if not error:
        return 0
    os.waitpid(child, 0)
    code = int(error)
    warn(f"j10ce-qos run: {command[0]}: {os.strerror(code)}")
    return NOT_FOUND if code == errno.ENOENT else NOT_EXECUTABLE


def _attend(child: int, waited: set[signal.Signals]) -> int:
    """Pass signals on until the child ends."""
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else SIGNALLED - code
        info = signal.sigwaitinfo(waited)
        if info.si_signo != signal.SIGCHLD and info.si_code != SI_KERNEL:
            os.kill(child, info.si_signo)
