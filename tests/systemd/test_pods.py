"""Pods on a node with the systemd driver and cgroup v2, where values go through D-Bus.

The units are named as a kubelet and containerd name them. The agent starts as in a pod whose API server is away: it has
the document and the pods that it remembers.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.agent.cache import Cache
from j10ce.model.native import NativeMeta
from j10ce.model.pod import Container, ContainerState, ContainerStatus, Moment, Pod, PodResources, PodSpec, PodStatus
from j10ce.model.quantity import Quantity
from j10ce.policy.document import FORMAT, NodeDocument, digest
from j10ce.policy.profiles import builtin
from j10ce.testing import build
from tests.agent.conftest import AgentProcess, eventually
from tests.systemd.conftest import cgroup_files, drop_ins, systemctl

MIB = 1 << 20
UID = "2f5b1d7e-8c1a-4c3e-9d55-0a1b2c3d4e5f"
ID = "c0ffee" + "0" * 58
NODE = "guest"
POD = f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"
PATH = f"kubepods.slice/kubepods-burstable.slice/{POD}"
CONTAINER = f"cri-containerd-{ID}.scope"
FILES = ("cpu.weight", "memory.min", "memory.low")
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CERTIFICATE = """-----BEGIN CERTIFICATE-----
MIIBeDCCAR+gAwIBAgIUS0CKWO2/rlIemsUOWS6ymjhk6JUwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbm9ib2R5MCAXDTI2MTExNTIwMDgwM1oYDzIxMjYxMDIyMjAw
ODAzWjARMQ8wDQYDVQQDDAZub2JvZHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AASvjFi/YA0wPnwbXVF41yCU5c3jb+Bw4L5ORpXxAWikPnKBICM3fHQPEb2p9GlK
1c1lxpT105gEIb7dWBgKUV+Ho1MwUTAdBgNVHQ4EFgQU5ee2bzs9DtKsMjzUX+fz
6SiAGbswHwYDVR0jBBgwFoAU5ee2bzs9DtKsMjzUX+fz6SiAGbswDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiAvNHUGLyS+vYYgLG17Ed0JeNGo9flt
ZJ/dF+nlKB+lLAIgfyELn3s9+4755QkGlEOxgGwHcE4CB3qTBiIqAtl+EAc=
-----END CERTIFICATE-----
"""


@pytest.fixture
def pod() -> Iterator[Pod]:
    """One that runs, with what a kubelet sets."""
    command = ["systemd-run", "--scope", f"--slice={POD}", f"--unit={CONTAINER}", "-p", "CPUWeight=4", "sleep", "600"]
    process = subprocess.Popen(command)
    assert eventually(lambda: Path(f"/sys/fs/cgroup/{PATH}/{CONTAINER}").is_dir())
    systemctl("set-property", "--runtime", POD, "CPUWeight=4")
    main = Container(name="main", resources=PodResources(requests={"cpu": Quantity.parse("100m")}))
    status = ContainerStatus(
        name="main", container_id=f"containerd://{ID}", state=ContainerState(running=Moment(started_at=None))
    )
    meta = NativeMeta(name="db", namespace="default", uid=UID, labels={"app": "db"})
    yield Pod(metadata=meta, spec=PodSpec(containers=(main,)), status=PodStatus(container_statuses=(status,)))
    systemctl("stop", CONTAINER)
    process.wait()
    systemctl("stop", "kubepods.slice")
    systemctl("revert", POD)


@pytest.fixture
def account() -> Iterator[None]:
    ACCOUNT.mkdir(parents=True)
    for name, text in (("ca.crt", CERTIFICATE), ("namespace", "j10ce-system"), ("token", "none")):
        (ACCOUNT / name).write_text(text)
    yield
    for name in ("ca.crt", "namespace", "token"):
        (ACCOUNT / name).unlink()
    ACCOUNT.rmdir()


@pytest.fixture
def agent(tmp_path: Path, clone: Path, pod: Pod, account: None) -> Iterator[AgentProcess]:
    one = AgentProcess(tmp_path, "j10ce", clone)
    one.run_dir.mkdir(parents=True)
    one.state_dir.mkdir(parents=True)
    cache = Cache(one.run_dir, one.state_dir)
    cache.keep_pods([pod])
    floor = build.reservation("db", labels={"app": "db"}, cpu="200m", memory="32Mi")
    document = NodeDocument(node=NODE, format=FORMAT, profiles=builtin(), policies=(floor,))
    cache.keep_document(replace(document, hash=digest(document)))
    one.environ |= {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    yield one
    one.clean()
    print(one.log.read_text()[-4000:])


def held() -> dict[str, dict[str, str]]:
    return {path: cgroup_files(path, *FILES) for path in (PATH, f"{PATH}/{CONTAINER}", "kubepods.slice")}


def test_a_pod_and_its_container_are_protected_and_given_back(agent: AgentProcess) -> None:
    before, kept = held(), drop_ins(POD)
    agent.start("--server", "kube:", "--node-name", NODE)
    assert eventually(lambda: int(held()[PATH]["memory.min"]) >= 32 * MIB)
    now = held()
    assert now[PATH]["cpu.weight"] == "4", "alone among its siblings it needs no more"
    assert int(now[f"{PATH}/{CONTAINER}"]["memory.min"]) == 32 * MIB
    assert now[f"{PATH}/{CONTAINER}"]["cpu.weight"] == "4"
    assert int(now["kubepods.slice"]["memory.min"]) >= 32 * MIB
    assert agent.stop() == 0
    assert held() == now, "nobody could say why it ended"
    agent.start("--server", "kube:", "--node-name", NODE)
    agent.client.post("/v1/revert", {})
    assert held() == before
    assert drop_ins(POD) == kept
