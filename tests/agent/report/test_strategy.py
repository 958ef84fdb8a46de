"""What strategies say of a node is in its snapshots, in its report, and in what explains it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.agent.report.report import contradicted
from j10ce.agent.ring.what_if import whatif
from j10ce.agent.socket.answers import explanation
from j10ce.model.kinds import NodeStrategy
from j10ce.model.knob import NODE
from j10ce.model.parts.strategy import Strategy
from j10ce.model.schema import plain
from j10ce.model.snapshot import NodeFacts
from j10ce.policy.document.document import FORMAT, NodeDocument
from j10ce.policy.profiles import builtin
from j10ce.testing.build import WALL, link, strategy, workload
from tests.agent.whole_ring import Ring

QUOTA = strategy("pool", {"suppress": {"mode": "quota", "thresholdPercent": 70}})


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    return Ring(tmp_path)


def document(*strategies: NodeStrategy) -> NodeDocument:
    return NodeDocument(node="node", format=FORMAT, profiles=builtin(), strategies=strategies)


def test_a_snapshot_has_what_strategies_say_and_its_epoch_moves_with_it(ring: Ring) -> None:
    before = ring.tick().snap
    assert before.strategy == Strategy()
    ring.agent.obey(document(QUOTA))
    after = ring.tick().snap
    assert (after.strategy.suppress.mode, after.strategy.suppress.threshold_percent) == ("quota", 70)
    assert after.epoch > before.epoch
    ring.agent.obey(document(QUOTA))
    assert ring.tick().snap.epoch == after.epoch, "the same once more is no change"


def test_an_arrival_is_decided_by_the_strategy_in_force(ring: Ring) -> None:
    ring.arrive(*(workload(f"w{n}", profile="ls") for n in range(12)))
    ring.tick()
    ring.agent.obey(document(QUOTA))
    assert ring.arrive(workload("late", profile="ls")).snap.strategy.suppress.mode == "quota"


def test_the_node_is_explained_by_what_is_said_of_it_and_by_whom(ring: Ring) -> None:
    ring.agent.obey(document(QUOTA))
    answer = explanation(ring.tick(), ring.agent.kernel, NODE, None, said=ring.agent.strategy)
    assert {"field": "suppress.mode", "value": "quota", "saidBy": "NodeStrategy/pool"} in answer["strategy"]
    assert "suppress.thresholdPercent = 70  (NodeStrategy/pool)" in answer["text"]


def test_a_percentage_of_a_link_of_unknown_speed_is_explained(ring: Ring) -> None:
    ring.agent.obey(document(strategy("pool", {"network": {"links": {"tap9": {"egress": "50%"}}}})))
    report = ring.tick()
    node = replace(report.snap.node, links={"tap9": link("tap9", None)})
    report = replace(report, snap=replace(report.snap, node=node))
    answer = explanation(report, ring.agent.kernel, NODE, None, said=ring.agent.strategy)
    (note,) = answer["notes"]
    assert note.startswith("network.links.tap9.egress: tap9 does not say its speed, so 50% of it is no amount")
    assert f"not heeded: {note}" in answer["text"]


def test_a_strategy_of_which_a_field_is_left_out_fails_on_the_node() -> None:
    low = strategy("low", {"eviction": {"memory": {"lowerPercent": 80}}})
    high = strategy("high", {"eviction": {"memory": {"thresholdPercent": 70}}}, priority=1)
    left_out = contradicted(document(low, high))
    assert left_out.keys() == {"NodeStrategy/low"}
    assert "eviction.memory.lowerPercent is left out" in left_out["NodeStrategy/low"]
    assert not contradicted(document(QUOTA))


def test_a_plan_on_paper_counts_strategies_among_the_objects() -> None:
    raw = plain(strategy("pool", {"burst": {"policy": "static"}}))
    node = NodeFacts("node", cpus=frozenset(range(4)), memory=8 << 30)
    assert whatif([raw], node, wall=WALL).snap.strategy.burst.policy == "static"


def test_what_a_strategy_says_of_a_profile_is_in_force_on_its_node(ring: Ring) -> None:
    ring.arrive(workload("web", profile="ls"))
    ring.agent.obey(document(strategy("pool", {"profiles": {"ls": {"cpu": {"weight": 3000}}}})))
    entitled = ring.tick().resolution.entitlements[workload("web").target]
    assert entitled.cpu.weight == 3000
    assert ("cpu.weight", "NodeStrategy/pool") in {(s.field, s.object) for s in entitled.sources}


def test_a_parameter_that_this_machine_cannot_set_is_named_in_a_note(ring: Ring) -> None:
    ring.agent.obey(document(strategy("pool", {"sysctls": {"watermarkScaleFactor": 150}})))
    assert any("vm.watermark_scale_factor" in note for note in ring.tick().plan.notes)
