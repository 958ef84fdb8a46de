"""What strategies say of a node, as `describe node` shows it: of a control plane of ours, and of Kubernetes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from j10ce.cli.fleet.nodes import describe_node
from j10ce.cli.fleet.strategy import strategy_of
from j10ce.errors import Denied, NotFound
from j10ce.model.schema import plain
from j10ce.policy.lifetime import revision_of
from j10ce.testing.build import strategy
from tests.cli.session import Session, eventually

BASE = "/apis/j10ce.io/v1alpha1"
NODE = {"metadata": {"name": "host-1", "labels": {"pool": "batch"}}}
LOW = strategy("everywhere", {"suppress": {"mode": "auto", "thresholdPercent": 65}})
POOL = {"suppress": {"thresholdPercent": 85}, "nodeSelector": {"matchLabels": {"pool": "batch"}}}
HIGH = strategy("batch-pool", POOL, priority=10)
ELSEWHERE = strategy("elsewhere", {"suppress": {"mode": "quota"}, "nodeSelector": {"matchLabels": {"zone": "x"}}})


class Api:
    """Answers what it has; NotFound for everything else, or Denied."""

    def __init__(self, answers: dict[str, Any], refuses: bool = False) -> None:
        self.answers, self.refuses = answers, refuses

    def get(self, path: str, **_: str) -> Any:
        if self.refuses:
            raise Denied("not for you")
        if path not in self.answers:
            raise NotFound(path)
        return self.answers[path]


FLEET = Api({f"{BASE}/nodedocuments/host-1": {"strategies": [plain(LOW), plain(HIGH)]}})
KUBERNETES = Api(
    {
        f"{BASE}/nodestrategies": {"items": [plain(s) for s in (LOW, HIGH, ELSEWHERE)]},
        f"{BASE}/policyrevisions": {"items": [plain(revision_of(LOW))]},
        "/api/v1/nodes/host-1": {"metadata": {"labels": {"zone": "y"}}},
    }
)


@pytest.mark.parametrize("api", [FLEET, KUBERNETES], ids=["fleet", "kubernetes"])
def test_every_field_is_shown_with_who_said_it(api: Any) -> None:
    text = describe_node(NODE, strategy_of(api, NODE))
    lines = [line.split() for line in text.splitlines()]
    assert ["suppress.mode", "auto", "NodeStrategy/everywhere"] in lines
    assert ["suppress.thresholdPercent", "85", "NodeStrategy/batch-pool"] in lines


def test_a_label_of_the_kubernetes_node_selects_too() -> None:
    answers = {**KUBERNETES.answers, "/api/v1/nodes/host-1": {"metadata": {"labels": {"zone": "x"}}}}
    api: Any = Api(answers)
    made = strategy_of(api, NODE)
    assert made.origins["suppress.mode"] == "NodeStrategy/elsewhere", "the first name of two with equal priority"


@pytest.mark.parametrize("api", [Api({}), Api({}, refuses=True)], ids=["no such kind", "no right"])
def test_where_nothing_is_known_nothing_is_shown(api: Any) -> None:
    assert "Strategy:" not in describe_node(NODE, strategy_of(api, NODE))


@pytest.mark.host
def test_on_the_node_itself_its_strategies_are_explained(stack: Session) -> None:
    stack.says("apply", "-f", "examples/fleet/strategy.yaml")
    assert eventually(lambda: "suppress.mode = auto  (NodeStrategy/everywhere)" in stack.says("explain", "node"))
    assert eventually(lambda: json.loads(stack.says("get", "nodes", "-o", "json"))["items"])
    host = json.loads(stack.says("get", "nodes", "-o", "json"))["items"][0]["metadata"]["name"]
    assert "NodeStrategy/everywhere" in stack.says("describe", "node", host)
    stack.says("delete", "-f", "examples/fleet/strategy.yaml")
    assert eventually(lambda: "no strategy selects it" in stack.says("explain", "node"))
