"""Whether a DaemonSet still wants its agent on a node: as its controller would decide."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from j10ce.agent.sync.daemonset import DaemonSet, stays
from j10ce.model.kube.native import Node, decode_native

LABELS = {"pool": "batch", "cores": "8"}


def wanted(pod: dict[str, Any], taints: list[dict[str, str]] | None = None) -> bool:
    daemonset = {"spec": {"template": {"spec": pod}}}
    node = {"metadata": {"name": "n1", "labels": LABELS}, "spec": {"taints": taints or []}}
    spec = decode_native(msgspec.json.encode(daemonset), DaemonSet).spec.template.spec
    return stays(spec, decode_native(msgspec.json.encode(node), Node))


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    fields = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": fields}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def labelled(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [expression(key, operator, *values)]}


@pytest.mark.parametrize(
    ("pod", "stay"),
    [
        pytest.param({}, True, id="nothing is asked of a node"),
        pytest.param({"nodeSelector": {"pool": "batch"}}, True, id="selected"),
        pytest.param({"nodeSelector": {"pool": "web"}}, False, id="not selected"),
        pytest.param(required(labelled("pool", "In", "batch", "web")), True, id="In"),
        pytest.param(required(labelled("pool", "In", "web")), False, id="not In"),
        pytest.param(required(labelled("pool", "NotIn", "batch")), False, id="NotIn"),
        pytest.param(required(labelled("gpu", "NotIn", "yes")), True, id="NotIn of a label that is not there"),
        pytest.param(required(labelled("gpu", "Exists")), False, id="Exists"),
        pytest.param(required(labelled("gpu", "DoesNotExist")), True, id="DoesNotExist"),
        pytest.param(required(labelled("cores", "Gt", "4")), True, id="Gt"),
        pytest.param(required(labelled("cores", "Lt", "4")), False, id="Lt"),
        pytest.param(required(labelled("pool", "Gt", "4")), False, id="Gt of a word"),
        pytest.param(required({"matchFields": [expression("metadata.name", "In", "n1")]}), True, id="by name"),
        pytest.param(required({"matchFields": [expression("metadata.name", "In", "n2")]}), False, id="by another name"),
        pytest.param(required(labelled("gpu", "Exists"), labelled("pool", "Exists")), True, id="one of two terms"),
        pytest.param(required({}), False, id="a term that asks for nothing selects nothing"),
        pytest.param(
            {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}}, True, id="a wish"
        ),
    ],
)
def test_by_the_labels_of_the_node(pod: dict[str, Any], stay: bool) -> None:
    assert wanted(pod) is stay


GONE = {"key": "reserved", "value": "gpu", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("tolerations", "taint", "stay"),
    [
        pytest.param([], GONE, False, id="driven out"),
        pytest.param([], GONE | {"effect": "NoSchedule"}, True, id="new ones are kept away, it stays"),
        pytest.param([], {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}, True, id="always tolerated"),
        pytest.param([{"operator": "Exists"}], GONE, True, id="everything"),
        pytest.param([{"key": "reserved", "operator": "Exists"}], GONE, True, id="every value"),
        pytest.param([{"key": "reserved", "value": "gpu"}], GONE, True, id="this value"),
        pytest.param([{"key": "reserved", "value": "disk"}], GONE, False, id="another value"),
        pytest.param([{"key": "other", "operator": "Exists"}], GONE, False, id="another key"),
        pytest.param(
            [{"key": "reserved", "operator": "Exists", "effect": "NoSchedule"}], GONE, False, id="another effect"
        ),
    ],
)
def test_by_the_taints_of_the_node(tolerations: list[dict[str, str]], taint: dict[str, str], stay: bool) -> None:
    assert wanted({"tolerations": tolerations}, [taint]) is stay
