"""Only kernel/ changes the machine; another module writes files only where that is its job."""

from __future__ import annotations

import ast

from tests.style.sources import Source, dotted, product

# Who writes, and what.  A folder ends in "/".  A row more needs a reason as good as these.
WRITERS = {
    "kernel/": "settings of the machine, and the journal of them",
    "store/": "its database",
    "observe/sensors/psi.py": "registers pressure triggers",
    "agent/cache.py": "the last good policies",
    "daemon/lock.py": "one agent per host",
    "agent/socket/serve.py": "its socket",
    "daemon/secret_files.py": "token and kubeconfig, for their owner alone",
    "manager/access/audit.py": "the audit log",
    "scheduler/process/departures.py": "the log of pods that have left, where it is asked for",
    "agent/sync/enrolment.py": "this node's token",
    "cli/": "the user's own files: token, kubeconfig, bundle",
    "bench/": "its scratch files",
    "testing/": "fake trees",
}

# The machine's controls are spelled in these folders only; everyone else asks them.
SPELLERS = ("kernel/", "host/", "observe/", "testing/")
CONTROLS = ("/sys/fs/cgroup", "/sys/fs/resctrl", "/sys/fs/bpf", "/proc/sys/")

WRITING_METHODS = {"write_text", "write_bytes", "mkdir", "rmdir", "unlink", "touch", "symlink_to", "hardlink_to"}
WRITING_FUNCTIONS = {
    *(f"os.{name}" for name in ("write", "pwrite", "writev", "mkdir", "makedirs", "rmdir", "removedirs", "remove")),
    *(f"os.{name}" for name in ("unlink", "rename", "replace", "link", "symlink", "truncate", "ftruncate", "chmod")),
    *(f"os.{name}" for name in ("chown", "mkfifo", "setpriority", "sched_setaffinity", "sched_setscheduler")),
    *(f"shutil.{name}" for name in ("rmtree", "copy", "copy2", "copyfile", "copytree", "move")),
    "tempfile.mkdtemp",
    "tempfile.mkstemp",
}
WRITING_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"}


def test_only_writers_write() -> None:
    strangers = [
        f"{source.path}:{call.lineno} {dotted(call.func)}"
        for source in product()
        if not source.module.startswith(tuple(WRITERS))
        for call in source.calls()
        if writes(call)
    ]
    assert not strangers, "propose a change instead, or add a row with a reason to WRITERS"


def writes(call: ast.Call) -> bool:
    name = dotted(call.func)
    if name == "os.open":
        return any(isinstance(node, ast.Attribute) and node.attr in WRITING_FLAGS for node in ast.walk(call))
    if name.split(".")[-1] == "open":
        position = 1 if name in ("open", "io.open") else 0
        modes = [*call.args[position : position + 1], *(word.value for word in call.keywords if word.arg == "mode")]
        return any(isinstance(mode, ast.Constant) and set(str(mode.value)) & set("wax+") for mode in modes)
    return name in WRITING_FUNCTIONS or (isinstance(call.func, ast.Attribute) and call.func.attr in WRITING_METHODS)


def test_only_the_rim_spells_the_machines_controls() -> None:
    strangers = [
        f"{source.path}:{line}"
        for source in product()
        if not source.module.startswith(SPELLERS)
        for line in spelled(source)
    ]
    assert not strangers, f"paths of kernel controls belong to {', '.join(SPELLERS)}"


def spelled(source: Source) -> list[int]:
    return [
        node.lineno
        for node in source.nodes()
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(CONTROLS)
    ]
