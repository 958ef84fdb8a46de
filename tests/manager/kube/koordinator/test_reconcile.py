"""Which NodeStrategies are written and deleted."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from j10ce.dialects.koordinator.native.strategies import generated
from j10ce.manager.kube.koordinator.reconcile import GONE, SAID_ANNOTATION, StrategyChanges, changes, deleted
from j10ce.model.kinds import Meta, NodeStrategy, NodeStrategySpec, Rollout

BURST, SYSTEM = "cpu-burst-config", "system-config"


def data(policy: str = "auto", scale: int = 20) -> dict[str, str]:
    return {
        BURST: json.dumps({"clusterStrategy": {"policy": policy}}),
        SYSTEM: json.dumps({"clusterStrategy": {"watermarkScaleFactor": scale}}),
    }


def stored(**words: Any) -> list[NodeStrategy]:
    return [
        replace(s, metadata=replace(s.metadata, resource_version=str(n), uid="u"))
        for n, s in enumerate(generated(data(**words)).all(), 1)
    ]


def names(strategies: tuple[NodeStrategy, ...]) -> list[str]:
    return [s.metadata.name for s in strategies]


def test_what_is_missing_is_created_and_what_is_right_is_left_alone() -> None:
    made = generated(data())
    assert names(changes([], made).create) == ["koordinator-cpu-burst-cluster", "koordinator-system-cluster"]
    assert changes(stored(), made) == StrategyChanges()


def test_what_differs_is_updated_at_the_revision_that_was_seen() -> None:
    (update,) = changes(stored(policy="none"), generated(data())).update
    assert (update.metadata.resource_version, update.spec.burst.policy) == ("1", "auto")


def test_what_others_wrote_beside_it_stays() -> None:
    meta, rollout = Meta(labels={"team": "sre"}, annotations={"why": "x"}), Rollout(canary_percent=5)
    there = [
        replace(
            s,
            metadata=replace(s.metadata, labels=s.metadata.labels | meta.labels, annotations=meta.annotations),
            spec=replace(s.spec, rollout=rollout),
        )
        for s in stored(policy="none")
    ]
    (update,) = changes(there, generated(data())).update
    assert update.metadata.labels["team"] == "sre"
    assert update.metadata.annotations == {"why": "x"}
    assert update.spec.rollout == rollout


def test_a_key_that_is_taken_out_takes_its_objects_with_it() -> None:
    without = {BURST: data()[BURST]}
    assert names(changes(stored(), generated(without)).delete) == ["koordinator-system-cluster"]


def test_objects_of_a_key_that_cannot_be_read_stay_and_say_why() -> None:
    todo = changes(stored(), generated({**data(), SYSTEM: "{"}))
    assert todo.create == todo.delete == ()
    (update,) = todo.update
    assert update.spec.sysctls.watermark_scale_factor == 20
    assert update.metadata.annotations[SAID_ANNOTATION].startswith("system-config = '{': not JSON")
    again = [s if s.metadata.name != update.metadata.name else update for s in stored()]
    assert not changes(again, generated({**data(), SYSTEM: "{"}))
    (healed,) = changes(again, generated(data())).update
    assert healed.metadata.annotations == {}


def test_objects_without_the_label_are_neither_changed_nor_deleted() -> None:
    foreign = NodeStrategy(metadata=Meta(name="koordinator-system-cluster"), spec=NodeStrategySpec(priority=7))
    other = NodeStrategy(metadata=Meta(name="mine"), spec=NodeStrategySpec())
    todo = changes([foreign, other], generated(data()))
    assert todo.taken == ("koordinator-system-cluster",)
    assert names(todo.create) == ["koordinator-cpu-burst-cluster"]
    assert todo.update == todo.delete == ()


def test_after_the_configmap_was_deleted_everything_stays_and_says_so() -> None:
    todo = changes(stored(), deleted([]))
    assert len(todo.update) == 2
    assert all(GONE in s.metadata.annotations[SAID_ANNOTATION] for s in todo.update)
    assert todo.create == todo.delete == ()
    assert not changes(todo.update, deleted([]))
