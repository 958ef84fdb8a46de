"""A pod of a plan is the workload that the agent would make of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from j10ce.adapters.kubernetes_workload import workload
from j10ce.agent.ring.kubelets_tree import in_kubelets_tree
from j10ce.agent.ring.what_if import read
from j10ce.errors import Invalid
from j10ce.model.kube.native import decode_native
from j10ce.model.kube.pod import Pod
from j10ce.model.quantity import Bytes, Millicores
from j10ce.model.resource import NOTHING, Resources
from j10ce.model.workload import Handle, Workload
from j10ce.testing import build

BIG = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "3", "memory": "2Gi"}}
ASKS = Resources(Millicores(500), Bytes(1 << 20))
SMALL = {"requests": {"cpu": "250m"}, "limits": {"memory": "64Mi"}}


def pod(**spec: object) -> dict[str, Any]:
    meta = {"name": "web", "namespace": "shop", "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(pod(), id="without containers"),
        pytest.param(
            pod(containers=[{"name": "a", "resources": BIG}, {"name": "b", "resources": SMALL}]), id="two containers"
        ),
        pytest.param(
            pod(initContainers=[{"name": "i", "resources": BIG}], containers=[{"name": "a", "resources": SMALL}]),
            id="an init container that is larger",
        ),
        pytest.param(
            pod(overhead={"cpu": "100m"}, containers=[{"name": "a", "resources": BIG}]), id="a sandbox of its own"
        ),
        pytest.param(pod(priorityClassName="system-node-critical"), id="critical"),
        pytest.param(pod(priorityClassName="system-of-mine"), id="not critical, whatever it is called"),
    ],
)
def test_it_asks_for_the_same(raw: dict[str, Any]) -> None:
    (planned,) = read([raw], build.node()).pods
    assert planned == workload(decode_native(msgspec.json.encode(raw), Pod), {}, Handle(), {})


def test_one_that_the_api_server_would_name_is_in_the_default_namespace_and_bears_its_beginning() -> None:
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-", "labels": None}, "spec": {}}
    (planned,) = read([raw], build.node()).pods
    assert (planned.namespace, planned.name) == ("default", "web")


def test_an_amount_that_is_none_is_refused() -> None:
    with pytest.raises(Invalid, match=r"spec\.containers\[0\]\.resources\.requests"):
        read([pod(containers=[{"name": "a", "resources": {"requests": {"cpu": "lots"}}}])], build.node())


@pytest.mark.parametrize(
    ("neighbour", "requests", "path"),
    [
        pytest.param("", NOTHING, "kubepods/besteffort/podshop-web", id="nobody is here"),
        pytest.param("kubepods/podx", ASKS, "kubepods/burstable/podshop-web", id="cgroupfs"),
        pytest.param(
            "kubepods.slice/kubepods-podx.slice",
            ASKS,
            "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podshop_web.slice",
            id="systemd",
        ),
        pytest.param("lab/kubepods/besteffort/podx", NOTHING, "lab/kubepods/besteffort/podshop-web", id="below a root"),
    ],
)
def test_it_stands_beside_the_pods_that_are_here(neighbour: str, requests: Resources, path: str) -> None:
    others = [Workload("shop", "other", handle=Handle(path=neighbour, made=False))]
    placed = in_kubelets_tree(Workload("shop", "web", requests=requests), others)
    assert (placed.handle.path, placed.handle.made) == (path, False)
