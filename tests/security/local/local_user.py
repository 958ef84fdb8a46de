"""What a user of the same machine has at hand: a folder with traps, processes, and the socket of the agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.agent.process import AgentProcess
from tests.cli.session import AS_NOBODY, NOBODY, Session, eventually

# Whoever imports or runs it is known by its command line.
TRAP = """import os, sys
with open({seen!r}, "a") as f:
    f.write(f"uid={{os.getuid()}} {{' '.join(sys.orig_argv)}}\\n")
"""
MODULES = ("structlog", "msgspec", "h11", "click", "yaml", "j10ce", "sitecustomize", "usercustomize", "uvicorn")


# A member of the socket's group, over plain HTTP: the answer's code, and its JSON.
ASK = """import http.client, socket, sys
conn = http.client.HTTPConnection("localhost")
conn.sock = socket.socket(socket.AF_UNIX)
conn.sock.connect(sys.argv[1])
try:
    conn.request(sys.argv[2], sys.argv[3], sys.stdin.read(), {"Content-Type": "application/json"})
except BrokenPipeError:
    pass  # it has heard enough, and says so
answer = conn.getresponse()
print(answer.status, answer.read().decode())
"""
# A process that gets the number of one that has ended, as it would after the numbers have gone round once.
WITH_NUMBER = """import ctypes, os, struct, sys
number = (ctypes.c_int * 1)(int(sys.argv[1]))
arguments = ctypes.create_string_buffer(struct.pack("<11Q", 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(number), 1, 0))
made = ctypes.CDLL(None).syscall(435, arguments, 88)  # clone3
if made == 0:
    os.execvp("sleep", ["sleep", "1000"])
print(made, flush=True)
sys.exit(made < 0 or os.waitpid(made, 0)[1] != 9)
"""
FLOOD = """import select, socket, sys
received, open_ones = b"", []
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(200 - len(open_ones)):
        one = socket.socket(socket.AF_UNIX)
        try:
            one.connect(sys.argv[1])
            one.send(b"POST /v1/holds HTTP/1.1\\r\\n")
        except OSError:  # refused before it could say anything
            one.close()
        else:
            open_ones.append(one)
    print("full", flush=True) if not received else None
    for one in select.select(open_ones, [], [], 0.05)[0]:
        try:
            received += one.recv(1000)
        except OSError:
            pass
        one.close()
        open_ones.remove(one)
print(b"503" in received, flush=True)
"""


class Trap:
    """A folder of someone else's: modules of every name that we import, and commands of every name that we look up."""

    def __init__(self, cli: Session) -> None:
        self.cli = cli
        self.folder, self.seen = cli.folder / "evil", cli.folder / "seen"
        self.folder.mkdir()
        self.seen.touch(0o666)
        for name in MODULES:
            (self.folder / f"{name}.py").write_text(TRAP.format(seen=str(self.seen)))
        for name in ("systemd-run", "python3", "python", "j10ce-qos-agent"):
            (self.folder / name).write_text(f'#!/bin/sh\necho "$0 $*" >> {self.seen}\nexit 1\n')
            (self.folder / name).chmod(0o755)
        os.chown(self.folder, NOBODY, NOBODY)

    def environ(self) -> dict[str, str]:
        """All that an interpreter, a loader or a shell would take code from."""
        start = str(self.folder / "structlog.py")
        return {
            **{k: v for k, v in self.cli.environ.items() if k != "PYTHONPATH"},
            "PYTHONPATH": f":{self.folder}", "PYTHONSTARTUP": start, "PYTHONUSERBASE": str(self.folder),
            "PYTHONHOME": "", "PYTHONPLATLIBDIR": "", "PATH": f".:{self.folder}:{os.environ['PATH']}",
            "HOME": str(self.folder), "PYTHONINSPECT": "",
        }  # fmt: skip


def plugin(site: Path, name: str, code: str) -> None:
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[j10ce.controllers]\n{name} = {name}:Plugin\n")
    (site / f"{name}.py").write_text(code)


def nobody_asks(agent: AgentProcess, method: str, path: str, body: object) -> tuple[int, Any]:
    words = [*AS_NOBODY, sys.executable, "-c", ASK, str(agent.run_dir / "agent.sock"), method, path]
    done = subprocess.run(words, input=json.dumps(body), capture_output=True, text=True, timeout=150, check=True)
    code, _, text = done.stdout.partition(" ")
    return int(code), json.loads(text)


def nobody_s(agent: AgentProcess) -> subprocess.Popen[bytes]:
    agent.kids.append(subprocess.Popen([*AS_NOBODY, "sleep", "1000"]))
    uid = Path(f"/proc/{agent.kids[-1].pid}/status")
    assert eventually(lambda: f"Uid:\t{NOBODY}" in uid.read_text())
    return agent.kids[-1]


def opened(agent: AgentProcess) -> AgentProcess:
    """One whose socket `nobody` may write to."""
    agent.config_dir.mkdir()
    (agent.config_dir / "agent.yaml").write_text("socketGroup: nogroup\n")
    return agent
