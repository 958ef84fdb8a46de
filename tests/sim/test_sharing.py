"""CPU time of a simulated machine is divided as a kernel would."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.sim.cgroups import FakeCgroups
from j10ce.sim.sharing import Mouth, by_threads, by_weight, divide, fill

MOUTHS = st.lists(st.builds(Mouth, st.floats(1, 1000), st.floats(0, 16)), max_size=8)


def tree(**values: dict[str, object]) -> FakeCgroups:
    made = FakeCgroups("v2", 4, 4096, ())
    for path, here in values.items():
        made.make(path)
        made.by_path[path].values.update(here)  # type: ignore[arg-type]
    return made


@given(st.floats(0, 64), MOUTHS)
def test_nobody_gets_more_than_it_can_use_and_nothing_is_left_that_someone_could(
    room: float, mouths: list[Mouth]
) -> None:
    shares = fill(room, mouths)
    assert all(share <= m.most + 1e-6 for share, m in zip(shares, mouths, strict=True))
    assert sum(shares) == pytest.approx(min(room, sum(m.most for m in mouths)), abs=1e-6)


@given(st.floats(0.1, 64), MOUTHS)
def test_who_is_not_sated_has_at_least_its_share_of_the_weight(room: float, mouths: list[Mouth]) -> None:
    shares = fill(room, mouths)
    weight = math.fsum(m.weight for m in mouths)
    for share, m in zip(shares, mouths, strict=True):
        assert share >= min(m.most, room * m.weight / weight) - 1e-6


@pytest.mark.parametrize(
    ("values", "wants", "got"),
    [
        pytest.param({"a": {"cpu.weight": 3072.0}, "b": {}}, {"a": 4, "b": 4}, {"a": 3, "b": 1}, id="by weight"),
        pytest.param({"a": {}, "b": {}}, {"a": 1, "b": 9}, {"a": 1, "b": 3}, id="what one leaves"),
        pytest.param({"a": {"cpu.max": 50_000.0}, "b": {}}, {"a": 4, "b": 1}, {"a": 0.5, "b": 1}, id="a quota"),
        pytest.param({"a": {"cpuset.cpus": frozenset({1})}, "b": {}}, {"a": 4, "b": 4}, {"a": 1, "b": 3}, id="a CPU"),
        pytest.param({"a": {"cpu.idle": 1.0}, "b": {}}, {"a": 4, "b": 3}, {"a": 1, "b": 3}, id="idle"),
    ],
)
def test_siblings_share(values: dict[str, dict[str, object]], wants: dict[str, float], got: dict[str, float]) -> None:
    cgroups = tree(**values)
    assert divide(cgroups, wants, 4.0, by_weight(cgroups)) == pytest.approx(got, abs=0.02)


def test_without_weights_whoever_has_more_threads_gets_more() -> None:
    cgroups = tree(a={"cpu.weight": 100_000.0}, b={})
    assert divide(cgroups, {"a": 2.0, "b": 4.0}, 4.0, by_threads) == pytest.approx({"a": 4 / 3, "b": 8 / 3})
