"""Pods as CRI-O makes them on a node with the systemd driver and cgroup v2: other names, the same care.

runc asks systemd for `crio-<id>.scope` as it does for CRI-O. The agent has the pods that it remembers.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.model.kube.native import NativeMeta
from j10ce.model.kube.pod import (
    Container,
    ContainerState,
    ContainerStatus,
    Moment,
    Pod,
    PodResources,
    PodSpec,
    PodStatus,
)
from j10ce.model.quantity import Quantity
from j10ce.testing import build
from tests.agent.process import eventually
from tests.lab.debian import program
from tests.systemd.kubelet import pod_path
from tests.systemd.pods import PodAgent, below, everything, pod_agent, unit, values
from tests.systemd.units import systemctl

MIB = 1 << 20
UID = "2f5b1d7e-8c1a-4c3e-9d55-0a1b2c3d4e5f"
ID = "c0ffee" + "0" * 58
PATH = pod_path(UID, "guaranteed")
SLICE, SCOPE = PATH.rpartition("/")[2], f"crio-{ID}.scope"
CONTAINER = f"{PATH}/{SCOPE}"
CONMON = f"crio-conmon-{ID}.scope"  # CRI-O's watcher, which is beside its container and none itself


class Runc:
    """One container of busybox."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._command = [program("runc"), "--systemd-cgroup", "--root", folder / "state"]

    def start(self) -> None:
        (self._folder / "rootfs/bin").mkdir(parents=True)
        shutil.copy(program("busybox"), self._folder / "rootfs/bin/busybox")
        subprocess.run([program("runc"), "spec"], cwd=self._folder, check=True)
        spec = json.loads((self._folder / "config.json").read_text())
        spec["process"] |= {"terminal": False, "args": ["/bin/busybox", "sleep", "600"]}
        spec["linux"] |= {"cgroupsPath": f"{SLICE}:crio:{ID}"}
        spec["linux"]["resources"]["cpu"] = {"shares": 102}
        (self._folder / "config.json").write_text(json.dumps(spec))
        subprocess.run([*self._command, "run", "--detach", ID], cwd=self._folder, check=True, stdin=subprocess.DEVNULL)

    def update(self, shares: int) -> None:
        """As CRI-O does when a pod is resized in place."""
        subprocess.run([*self._command, "update", "--cpu-share", str(shares), ID], check=True)

    def end(self) -> None:
        subprocess.run([*self._command, "delete", "--force", ID], check=True)


@pytest.fixture
def runc(tmp_path: Path) -> Iterator[Runc]:
    """A pod that runs, with what a kubelet sets."""
    one = Runc(tmp_path)
    one.start()
    systemctl("set-property", "--runtime", SLICE, "CPUWeight=4")
    watcher = subprocess.Popen(["systemd-run", "--scope", f"--slice={SLICE}", f"--unit={CONMON}", "sleep", "600"])
    assert eventually(lambda: f"{PATH}/{CONMON}" in below(PATH))
    systemctl("daemon-reload")  # whatever systemd forgets then is forgotten before anything is compared
    yield one
    one.end()
    systemctl("stop", CONMON)
    watcher.wait()
    systemctl("stop", "kubepods.slice")
    systemctl("revert", SLICE)


@pytest.fixture
def agent(tmp_path: Path, clone: Path, runc: Runc) -> Iterator[PodAgent]:
    asked = {"cpu": Quantity.parse("100m"), "memory": Quantity.parse("64Mi")}
    main = Container(name="main", resources=PodResources(requests=asked))
    state = ContainerState(running=Moment(started_at=None))
    status = PodStatus(container_statuses=(ContainerStatus(name="main", container_id=f"cri-o://{ID}", state=state),))
    meta = NativeMeta(name="db", namespace="default", uid=UID, labels={"app": "db"})
    with pod_agent(tmp_path / "agent", clone) as one:
        floor = build.reservation("db", labels={"app": "db"}, cpu="200m", memory="32Mi")
        one.remember([floor], [Pod(metadata=meta, spec=PodSpec(containers=(main,)), status=status)])
        yield one


def test_a_pod_of_cri_o_is_protected_through_a_resize_and_a_restart_and_given_back(agent: PodAgent, runc: Runc) -> None:
    before = everything(below("kubepods.slice"))
    agent.begin()
    assert eventually(lambda: unit(PATH, "MemoryMin") == {"MemoryMin": str(32 * MIB)})
    held = values(before)
    assert held[PATH]["cpu.weight"] == "4", "alone among its siblings it needs no more"
    assert held[CONTAINER]["memory.min"] == held["kubepods.slice"]["memory.min"] == str(32 * MIB)
    assert held[f"{PATH}/{CONMON}"]["memory.min"] == "0"
    runc.update(204)
    assert values([CONTAINER]) == {CONTAINER: held[CONTAINER] | {"cpu.weight": "8"}}
    runc.update(102)
    assert agent.stop() == 0
    assert values(before) == held, "nobody could say why it ended"
    agent.begin()
    agent.client.post("/v1/revert", {})
    assert everything(before) == before
