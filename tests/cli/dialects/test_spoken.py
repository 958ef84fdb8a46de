"""explain pod/NAME over an API server: what a pod says in Koordinator's words, and who understands it."""

from __future__ import annotations

from typing import Any

import pytest

from j10ce.cli.dialects.spoken import AGENTS, GENERATED, dialects_of
from j10ce.cli.pods.pod import explain_pod
from j10ce.errors import Denied, NotFound
from j10ce.model.schema import plain
from j10ce.policy.profiles import builtin

GROUP = "/apis/j10ce.io/v1alpha1"
SPEAKING = {"spec": {"template": {"spec": {"containers": [{"args": ["--server=kube:", "--dialect=koordinator"]}]}}}}
POD = {
    "metadata": {
        "name": "p",
        "namespace": "shop",
        "labels": {"koordinator.sh/qosClass": "LSE"},
        "annotations": {
            "koordinator.sh/memoryQOS": '{"minLimitPercent": 50, "wmarkRatio": 90}',
            "koordinator.sh/networkQOS": '{"egressLimit": "100M"}',
            "koordinator.sh/blkioQOS": '{"blocks": []}',
            "koordinator.sh/cpuBurst": "{",
        },
    },
    "spec": {
        "nodeName": "n1",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}],
    },
}


class Api:
    """Answers by path; an error where one is to be."""

    where = "https://api"

    def __init__(self, trusted: bool = True, **more: Any) -> None:
        labels = {"j10ce.io/trusted": "true"} if trusted else {}
        strategy = {
            "metadata": {"name": "s", "labels": {"j10ce.io/dialect": "koordinator"}},
            "spec": {"profiles": {"lse": {"memory": {"throttlingPercent": 70}}}},
        }
        self.answers: dict[str, Any] = {
            "/api/v1/namespaces/shop/pods/p": POD,
            "/api/v1/namespaces/shop": {"metadata": {"labels": labels}},
            f"{GROUP}/qosprofiles": {"items": [plain(p) for p in builtin()]},
            f"{GROUP}/namespaces/shop/minimalreservationpolicies": {"items": []},
            f"{GROUP}/nodeqoses/n1": {"metadata": {"name": "n1"}, "status": {"node": {"heartbeat": "now"}}},
            f"{GROUP}/nodestrategies": {"items": [strategy]},
            f"{GROUP}/policyrevisions": {"items": []},
            AGENTS: SPEAKING,
            **more,
        }

    def get(self, path: str, **query: str) -> Any:
        answer = self.answers.get(path, NotFound(path))
        if isinstance(answer, Exception):
            raise answer
        if "labelSelector" not in query:
            return answer
        key, _, value = query["labelSelector"].partition("=")
        return {"items": [one for one in answer["items"] if one["metadata"].get("labels", {}).get(key) == value]}


def explained(api: Any) -> dict[str, Any]:
    status = api.answers[f"{GROUP}/nodeqoses/n1"]
    status["status"]["node"] = {"heartbeat": "2026-01-31T12:00:00Z"}
    return explain_pod(api, "shop", "p")


def test_class_profile_annotations_and_what_is_not_heeded_are_named() -> None:
    facts = explained(Api())
    assert (facts["profile"], facts["why"]) == ("lse", "label koordinator.sh/qosClass=LSE")
    said = {o["field"]: o["by"] for o in facts["overrides"]}
    assert said["memory.minPercent"] == "annotation koordinator.sh/memoryQOS"
    assert said["memory.throttlingPercent"] == "NodeStrategy/s"
    assert said["memory.watermarkPercent"] == "annotation koordinator.sh/memoryQOS"
    assert said["network.egress.ceiling"] == "annotation koordinator.sh/networkQOS"
    assert any("blkioQOS is not heeded" in text for text in facts["unheeded"])
    assert any("cpuBurst" in text and "not JSON" in text for text in facts["unheeded"])
    assert "Differs from its profile:" in facts["text"]


def test_a_namespace_that_is_not_trusted_is_named_with_what_to_do() -> None:
    facts = explained(Api(trusted=False))
    assert facts["profile"] == "ls"
    assert any("label the namespace j10ce.io/trusted=true" in note for note in facts["notes"])


def test_words_that_no_agent_understands_are_said_to_be() -> None:
    facts = explained(Api(**{AGENTS: {"spec": {}}}))
    assert facts["profile"] == ""
    assert any("koordinator.sh/qosClass" in note and "understand no dialect" in note for note in facts["notes"])


@pytest.mark.parametrize(
    ("answers", "names"),
    [
        ({}, ["koordinator"]),
        ({AGENTS: {"spec": {}}}, []),
        ({AGENTS: Denied("no right")}, ["koordinator"]),
        ({AGENTS: NotFound("none"), GENERATED: {"items": []}}, []),
        ({AGENTS: NotFound("none"), GENERATED: Denied("no right")}, []),
    ],
    ids=["by option", "without it", "by what a manager made", "neither", "nobody may know"],
)
def test_which_dialects_a_cluster_understands(answers: dict[str, Any], names: list[str]) -> None:
    api: Any = Api(**answers)
    assert dialects_of(api) == names
