"""up: the embedded stack in the foreground: store and API on loopback, and the agent of this host."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from j10ce.agent.config import load
from j10ce.agent.dialects import DIALECTS
from j10ce.cli.host.doctor import short_doctor
from j10ce.cli.host.launch import refuse_taken, start, start_agent
from j10ce.cli.host.left_over import LeftOver, left_over
from j10ce.cli.output import Verbatim, say
from j10ce.cli.peers import OneOf, Peers
from j10ce.daemon.lock import claim, holder
from j10ce.daemon.secret_files import write_private
from j10ce.errors import Busy, Denied, Finding, Invalid, QosError, Unreachable
from j10ce.host import child
from j10ce.http.addresses import confidential


@click.command("up")
@click.option(
    "--listen", default="127.0.0.1:7443", show_default=True, envvar="J10CE_LISTEN", help="Loopback address of the API."
)
@click.option(
    "--dialect",
    "dialects",
    multiple=True,
    type=OneOf([*DIALECTS]),
    help="Let the agent understand another system's labels and annotations.",
)
@click.pass_obj
def up_command(peers: Peers, listen: str, dialects: tuple[str, ...]) -> None:
    """Run the embedded stack in the foreground; Ctrl-C restores every value it changed.

    A value that is held, or that someone else changed since, is left alone and reported; then the exit code is 1.

    \b
    Example:
      j10ce-qos up
      j10ce-qos up --dialect koordinator
    """
    listen = _address(listen)
    stack = Stack(peers, listen, dialects)
    waited = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    stack.start()
    status = peers.agent().get("/v1/status")
    say(short_doctor(peers.agent().get("/v1/doctor"), privileged="unwritable" not in status))
    if unarmed := _unarmed(status):
        say(unarmed)
    for each in _left_over(peers):
        say(str(each))
    say(ABOUT.format(server=f"http://{listen}", kubeconfig=peers.dirs.kubeconfig))
    say(Verbatim(NEXT))  # to be copied, so that no line of it is folded
    while True:
        got = signal.sigwaitinfo(waited).si_signo
        match got:
            case signal.SIGCHLD:
                stack.mend()
            case signal.SIGHUP:
                stack.agent.send_signal(signal.SIGHUP)
            case _:
                raise SystemExit(stack.stop(revert=got == signal.SIGINT))


def _address(listen: str) -> str:
    """Where the API listens, on loopback; a port alone is enough. Raises Invalid and Denied."""
    host, _, port = f"127.0.0.1:{listen}".rpartition(":") if listen.isdigit() else listen.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise Invalid([Finding("--listen", listen, "not an address", "write it as 127.0.0.1:7443, or 7443")], "option")
    if not confidential(f"http://{host}:{port}"):
        hint = "listen on 127.0.0.1, or run j10ce-qos-controller-manager, which serves a fleet over TLS"
        raise Denied(f"{listen} is not loopback, and `up` serves this host alone: {hint}")
    return f"{host}:{port}"


def _left_over(peers: Peers) -> list[LeftOver]:
    """What runs on since an earlier `up` ended with Ctrl-C."""
    listed = peers.agent().get("/v1/workloads")["items"]
    managed = {w["status"]["cgroup"] for w in listed if (w.get("status") or {}).get("cgroup")}
    return left_over(load(peers.dirs.config).top, managed, holder(peers.dirs.run)[0])


def _unarmed(status: dict[str, Any]) -> str:
    """One line where nothing will be written."""
    if status["armed"]:
        return ""
    why = status.get("unwritable") or "its configuration or `j10ce-qos disarm` says so"
    return f"read-only (not armed): it plans and explains, and writes nothing; {why}"


ABOUT = """
API       {server}  (token in {kubeconfig})
Ctrl-C    stops, and restores every value that was changed, but for what is held or was changed by someone else
"""
NEXT = """\
Next, in another terminal:
  j10ce-qos apply -f examples/standalone/
  j10ce-qos run --profile ls --name web --label app=web -- python3 -m http.server 8080
  j10ce-qos explain web"""


class Stack:
    """Two children, watched over: the manager and the agent."""

    def __init__(self, peers: Peers, listen: str, dialects: Sequence[str] = ()) -> None:
        self.dirs = peers.dirs
        self.peers = peers
        self.listen = listen
        self.dialects = dialects
        self.restarts = 0
        self._claimed = -1
        self.manager: subprocess.Popen[bytes]
        self.agent: subprocess.Popen[bytes]

    def start(self) -> None:
        """Raises Busy, with nothing touched, where another stack or a lasting agent runs.

        Whatever keeps the agent from starting, Ctrl-C included, the manager does not outlive it.
        """
        self.dirs.make()
        self._claim(self.dirs.run / "up.lock")
        self._refuse_lasting_agent()
        refuse_taken(self.listen)
        write_private(self.dirs.token, secrets.token_urlsafe(32) + "\n")
        self.manager = self._manager()
        try:
            self.agent = self._agent()
        except (QosError, KeyboardInterrupt):
            self._end_manager()
            raise

    def _claim(self, lock: Path) -> None:
        claimed = claim(lock, str(os.getpid()))
        if claimed is None:
            other = lock.read_text().strip() or "unknown"
            raise Busy(f"`j10ce-qos up` runs already on {lock.parent}: process {other}; stop it there first")
        self._claimed = claimed

    def _refuse_lasting_agent(self) -> None:
        """One that `run` started hands over; any other was started by someone who wants it."""
        pid, mode = holder(self.dirs.run)
        if mode != "until-idle" and self.peers.agent_answers():
            raise Busy(f"an agent runs already on {self.dirs.run}: process {pid}; stop it first, or use it")

    def mend(self) -> None:
        """A child that died is started again, five times at most; then the stack gives up, settings kept."""
        dead = [p for p in (self.manager, self.agent) if p.poll() is not None]
        if not dead:
            return
        self.restarts += len(dead)
        for p in dead:
            name = "manager" if p is self.manager else "agent"
            say(f"the {name} ended with code {p.returncode}, starting it again; see {self.dirs.run / name}.log")
        if self.restarts > 5:
            self.stop(revert=False)
            raise Unreachable(f"gave up after 5 restarts; logs are in {self.dirs.run}")
        try:
            if self.manager in dead:
                self.manager = self._manager()
            if self.agent in dead:
                self.agent = self._agent()
        except KeyboardInterrupt:
            return  # its signal is still pending: whoever waits for signals has it next, and stops as it says
        except QosError:
            self.stop(revert=False)
            raise

    def stop(self, *, revert: bool) -> int:
        """Agent first: SIGINT gives every value back, SIGTERM keeps them."""
        say("\nrestoring…" if revert else "\nstopping; settings stay")
        living = self._living() if revert else []
        code = self._end(self.agent, signal.SIGINT if revert else signal.SIGTERM)
        self._end_manager()
        if living:
            run, they = ("runs", "cgroup it was") if len(living) == 1 else ("run", "cgroups they were")
            say(f"{len(living)} still {run}, without QoS, in the {they} given: {', '.join(living)}")
            say("`j10ce-qos revert` removes what is left of our cgroups, once nothing runs in them")
        if revert and code:
            return self._finish(code)
        say("done" if code == 0 else self._ended(code))
        return code

    def _finish(self, code: int) -> int:
        """The agent could not give everything back, or did not come to it: what can be is, and the rest is named."""
        left = self.peers.revert(force=False)["left"]
        if code != 1 or not left:  # with 1 it says no more than that something is left
            say(self._ended(code))
        for each in left:
            say(f"left alone: {each['setting']}, {each['reason']}")
        say("`j10ce-qos revert --force` puts them back" if left else "done")
        return int(bool(left))

    def _ended(self, code: int) -> str:
        return f"the agent ended with code {code}; see {self.dirs.run / 'agent.log'}"

    def _living(self) -> list[str]:
        try:
            return [w["metadata"]["name"] for w in self.peers.agent(timeout=5.0).get("/v1/workloads")["items"]]
        except QosError:
            return []  # it died first; its log tells

    def _manager(self) -> subprocess.Popen[bytes]:
        d = self.dirs
        options: list[Any] = [
            "--store", f"sqlite:///{d.state / 'store.sqlite'}",
            "--listen", self.listen, "--token-file", d.token, "--kubeconfig", d.kubeconfig, "--agent-socket", d.socket,
            "--namespace-limit", "100",  # the host has one owner
        ]  # fmt: skip
        return start(child.python("j10ce.manager.main", *map(str, options)), d, "manager")

    def _agent(self) -> subprocess.Popen[bytes]:
        server = f"http://{self.listen}"
        words = [f"--dialect={name}" for name in self.dialects]
        return start_agent(self.dirs, "--server", server, "--token-file", str(self.dirs.token), "--takeover", *words)

    def _end_manager(self) -> None:
        self._end(self.manager, signal.SIGTERM)
        self.dirs.kubeconfig.unlink(missing_ok=True)
        self.dirs.token.unlink(missing_ok=True)

    @staticmethod
    def _end(process: subprocess.Popen[bytes], how: signal.Signals) -> int:
        if process.poll() is None:
            process.send_signal(how)
        try:
            return process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
