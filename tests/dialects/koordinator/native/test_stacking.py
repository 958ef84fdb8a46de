"""Layers over each other, so that the first that selects a node has the word there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from j10ce.dialects.koordinator.native import stacking
from j10ce.dialects.koordinator.native.stacking import NativeLayer, stacked
from j10ce.model.kinds import Selector
from j10ce.model.parts.strategy import Strategy, SystemCpusSection
from j10ce.policy.strategy import fields


def layer(n: int) -> NativeLayer:
    strategy = Strategy(system_cpus=SystemCpusSection(cpus=str(n)))
    return NativeLayer(f"e{n}", Selector(match_labels={"pool": f"p{n}"}), -n, strategy)


def test_every_layer_is_read_once_however_many_are_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read again for each pair, a thousand of them held up the leader for half a minute."""
    reads = Counter[str]()

    def counted(strategy: Strategy) -> Iterator[tuple[str, Any]]:
        reads[str(strategy.system_cpus.cpus)] += 1
        return fields(strategy)

    monkeypatch.setattr(stacking, "fields", counted)
    assert len(stacked([layer(n) for n in range(20)])) == 20
    assert {*reads.values()} == {1}
