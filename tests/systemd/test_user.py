"""A user without root: the user's own manager, and what it was delegated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.systemd.units import AS_USER, ENV, UID

# Runs as the user, and tells what it found as JSON.
SCRIPT = """
import json, os, subprocess
from j10ce.host.mounts import Hierarchies
from j10ce.kernel.owner import choose
from j10ce.model.knob import KNOBS, Setting, group, workload

owner = choose(Hierarchies.discover(), "systemd")
tree, (backend, *_) = owner.tree, owner.backends
groups = [tree.path_for("", "", ""), tree.path_for("sensitive", "", "")]
target, at = workload("default", "web"), tree.path_for("sensitive", "default", "web")
answers = [repr(tree.make(group(g.path), g)) for g in groups] + [repr(tree.make(target, at))]
wanted = {"cpu.weight": 2048.0, "memory.low": 8388608.0, "memory.oom.group": 1.0}
answers += map(repr, backend.write_many([(Setting(target, k), v) for k, v in wanted.items()], at))
child = subprocess.Popen(["sleep", "600"])
answers.append(repr(tree.join(target, child.pid)))
seen = {
    "name": tree.name,
    "path": at.path,
    "in": open(f"/proc/{child.pid}/cgroup").read().strip(),
    "held": {k: backend.read(Setting(target, k), at) for k in wanted},
    "answers": answers,
    "needs": {k: s.needs for k, s in backend.knobs().items() if not s.ok and not KNOBS[k].rare},
}
child.kill()
child.wait()
for g in reversed(groups):
    seen["answers"].append(repr(tree.remove(group(g.path))))
print(json.dumps(seen))
"""


def test_a_user_protects_a_command_without_root(user: str, clone: Path) -> None:
    env = ENV | {"PYTHONPATH": str(clone / "src")}
    done = subprocess.run([*AS_USER, sys.executable, "-c", SCRIPT], env=env, cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    root = f"user.slice/user-{UID}.slice/user@{UID}.service"
    assert output["name"] == "systemd-user"
    assert output["path"] == f"{root}/j10ce.slice/j10ce-sensitive.slice/j10ce-default-web.scope"
    assert output["in"] == f"0::/{output['path']}", output["answers"]
    assert output["held"] == {"cpu.weight": 2048.0, "memory.low": 8388608.0, "memory.oom.group": 1.0}
    kept = {knob: f"{knob} of user.slice, which root alone can set" for knob in ("memory.min", "memory.low")}
    assert output["needs"] == kept | {"cpuset.cpus": f"the cpuset controller delegated to {root}"}
    assert all(a.startswith("Applied") for a in output["answers"]), output["answers"]
