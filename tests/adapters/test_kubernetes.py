"""What a node asks for of its pods: it stands in the report as long as it is wanted, and for that very pod."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from j10ce.adapters.kubernetes import MOST_REQUESTS, Known, KubernetesAdapter
from j10ce.errors import NotFound
from j10ce.model.knob import TargetId, workload
from j10ce.model.kube.native import NativeMeta
from j10ce.model.kube.pod import Pod
from j10ce.model.workload import Handle
from j10ce.testing import build

WEB, DB = workload("shop", "web"), workload("shop", "db")


def adapter(*targets: TargetId, uid: str = "") -> KubernetesAdapter:
    made = KubernetesAdapter(None, None, None, None)  # type: ignore[arg-type]
    for target in targets:
        name = target.rpartition("/")[2]
        pod = Pod(metadata=NativeMeta(name=name, namespace="shop", uid=uid or f"uid-{name}"))
        known = build.workload(name, namespace="shop")
        made._known[target] = Known(pod, {}, Handle("kubepods/pod1"), {}, known)
    return made


def test_a_request_stands_as_long_as_it_is_wanted_and_remembers_since_when() -> None:
    made = adapter(WEB, DB)
    assert made.still_wanted({WEB: "memory 96 %"}, 100.0)
    assert not made.still_wanted({WEB: "memory 97 %"}, 200.0)
    (asked,) = made.requests()
    assert (asked.namespace, asked.name, asked.uid) == ("shop", "web", "uid-web")
    assert (asked.why, asked.since) == ("memory 96 %", datetime.fromtimestamp(100, UTC))
    assert made.still_wanted({DB: "memory 97 %"}, 300.0)
    assert [r.name for r in made.requests()] == ["db"]
    assert made.still_wanted({}, 400.0)
    assert made.requests() == ()


def test_another_pod_of_the_same_name_is_not_meant() -> None:
    made = adapter(WEB)
    made.still_wanted({WEB: "memory 96 %"}, 100.0)
    before = made._known[WEB]
    other = replace(before.pod, metadata=replace(before.pod.metadata, uid="another"))
    made._known[WEB] = before._replace(pod=other)
    assert made.still_wanted({WEB: "memory 96 %"}, 101.0)
    assert made.requests() == ()


async def test_what_is_no_pod_of_this_node_is_someone_elses_to_evict() -> None:
    made = adapter(WEB)
    await made.evict(WEB, "memory 96 %")
    with pytest.raises(NotFound):
        await made.evict(DB, "memory 96 %")
    assert not made.still_wanted({DB: "memory 96 %"}, 100.0)


def test_a_report_has_room_for_so_many() -> None:
    targets = [workload("shop", f"w{n}") for n in range(MOST_REQUESTS + 5)]
    made = adapter(*targets)
    made.still_wanted(dict.fromkeys(targets, "memory 96 %"), 100.0)
    assert len(made.requests()) == MOST_REQUESTS
