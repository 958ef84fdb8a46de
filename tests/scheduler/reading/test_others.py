"""What a scheduler reads beside pods."""

from __future__ import annotations

import json
from typing import Any

from j10ce.model.kube.native import NativeObject, decode_native
from j10ce.model.kube.surroundings import (
    ElasticQuotaObject,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PodGroup,
    Service,
    WideNode,
)
from j10ce.scheduler.book.around import (
    BudgetFacts,
    ClaimFacts,
    GroupFacts,
    QuotaFacts,
    ServiceFacts,
    VolumeFacts,
)
from j10ce.scheduler.book.facts import NodeFacts, NodeTaint
from j10ce.scheduler.book.shape import LabelTest, NodeExpression, NodeTerm
from j10ce.scheduler.reading import others

META = {"name": "a", "namespace": "shop"}


def native(into: type[Any], **parts: Any) -> Any:
    assert issubclass(into, NativeObject)
    return decode_native(json.dumps({"metadata": META, **parts}).encode(), into)


def test_a_node() -> None:
    node = native(
        WideNode,
        spec={
            "unschedulable": True,
            "taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "k", "effect": "Someday"}],
        },
        status={
            "allocatable": {"cpu": "3900m", "memory": "1Gi", "pods": "110", "example.com/gpu": "2"},
            "images": [{"names": ["reg/web@sha256:0", "reg/web:1"], "sizeBytes": 5}],
        },
    )
    amounts = {"cpu": 3900, "memory": 1 << 30, "pods": 110, "example.com/gpu": 2}
    taints, images = (NodeTaint("k", "", "NoSchedule"),), {"reg/web@sha256:0": 5, "reg/web:1": 5}
    assert others.node_facts(node) == NodeFacts("a", {}, amounts, taints, True, images)


def test_a_budget_without_a_selector_chooses_nobody() -> None:
    status = {"disruptionsAllowed": 2, "disruptedPods": {"web-0": "2026-01-01T00:00:00Z"}}
    budget = native(PodDisruptionBudget, spec={"minAvailable": "50%"}, status=status)
    assert others.budget_facts(budget) == BudgetFacts("shop", "a", None, 2, frozenset({"web-0"}))
    everybody = native(PodDisruptionBudget, spec={"selector": {}})
    assert others.budget_facts(everybody).selector == LabelTest()


def test_claims_and_volumes() -> None:
    claim = native(PersistentVolumeClaim, spec={"volumeName": "v"}, status={"phase": "Bound"})
    assert others.claim_facts(claim) == ClaimFacts("shop", "a", "v")
    lost = native(PersistentVolumeClaim, spec={"volumeName": "v"}, status={"phase": "Lost"})
    assert not others.claim_facts(lost).volume
    here = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    volume = native(PersistentVolume, spec={"nodeAffinity": {"required": {"nodeSelectorTerms": [here]}}})
    assert others.volume_facts(volume) == VolumeFacts("a", (NodeTerm((NodeExpression("zone", "Exists"),)),))
    assert others.volume_facts(native(PersistentVolume)).nodes is None


def test_groups_quotas_and_services() -> None:
    group = native(PodGroup, spec={"minMember": 3, "scheduleTimeoutSeconds": 10})
    assert others.group_facts(group) == GroupFacts("shop", "a", 3, 10.0)
    quota = native(ElasticQuotaObject, spec={"min": {"cpu": "4"}, "max": {"cpu": "6", "memory": "1Mi"}})
    assert others.quota_facts(quota) == QuotaFacts("shop", "a", {"cpu": 4000}, {"cpu": 6000, "memory": 1 << 20})
    service = native(Service, spec={"selector": {"app": "web"}})
    assert others.service_facts(service) == ServiceFacts("shop", "a", LabelTest((("app", "web"),)))
    assert others.service_facts(native(Service)).selector is None
