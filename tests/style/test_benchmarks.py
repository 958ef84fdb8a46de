"""A benchmark whose goal is missed fails."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks import kubepods, latency
from tests.style.sources import CLONE


@pytest.mark.parametrize("path", sorted((CLONE / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_what_a_benchmark_finds_is_its_exit_code(path: Path) -> None:
    runs = [n for n in ast.parse(path.read_text()).body if isinstance(n, ast.If) and "__main__" in ast.unparse(n.test)]
    assert all("xit(main())" in ast.unparse(run) for run in runs), "its verdict is dropped"


@pytest.mark.parametrize(
    ("ours_ms", "missed"), [pytest.param(1.4, False, id="met"), pytest.param(1.6, True, id="missed")]
)
def test_a_slow_service_after_a_kubelets_restart_is_a_failure(ours_ms: float, missed: bool) -> None:
    p99s = {arm.name: 1.0 for arm in kubepods.ARMS} | {"ours": ours_ms}
    assert kubepods.report({name: [kubepods.Round(0.5, p99, 9.0, 1.0)] for name, p99 in p99s.items()}) is missed


@pytest.mark.parametrize(
    ("ours_ms", "missed"), [pytest.param(1.2, False, id="met"), pytest.param(1.4, True, id="missed")]
)
def test_a_slow_service_beside_hogs_is_a_failure(ours_ms: float, missed: bool) -> None:
    p99s = {"alone": 1.0, "no QoS": 9.0, "kubernetes": 2.0, "ours": ours_ms, "ceiling": 1.0}
    assert latency.report({name: [latency.Round(0.5, p99, 9.0, 1.0)] for name, p99 in p99s.items()}) is missed
