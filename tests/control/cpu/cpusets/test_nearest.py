"""CPUs that belong together: cores, then caches, then memory nodes; as few of them opened and moved as possible."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.cpu.cpusets.nearest import Machine, pick
from j10ce.model.machine.topology import Topology
from j10ce.testing import build

SERVER = build.topology(8, per_l3=2, per_socket=4)  # siblings are n and n + 8; caches {0,1}, {2,3}, …; sockets of four
ALL = SERVER.cpus


def picked(count: int, free: frozenset[int] = ALL, bind: str = "", had: frozenset[int] = frozenset()) -> set[int]:
    options = {"bind": bind} if bind else {}
    return set(pick(count, free, Machine(ALL, SERVER), had=had, **options))  # type: ignore[arg-type]


CASES = [
    pytest.param({"count": 2}, {7, 15}, id="a whole core, the highest"),
    pytest.param({"count": 4}, {6, 7, 14, 15}, id="the cores of one cache"),
    pytest.param({"count": 6}, {5, 6, 7, 13, 14, 15}, id="of one memory node where a cache is too small"),
    pytest.param({"count": 1, "free": ALL - {3}}, {11}, id="what another left of a core"),
    pytest.param({"count": 2, "free": ALL - {6, 14}}, {7, 15}, id="the fullest cache, so that others stay whole"),
    pytest.param({"count": 4, "free": ALL - {6, 7}}, {4, 5, 12, 13}, id="whole cores rather than single CPUs nearby"),
    pytest.param({"count": 2, "free": frozenset({1, 5, 7})}, {5, 7}, id="without a whole core at least one socket"),
    pytest.param({"count": 10}, {3, 4, 5, 6, 7, 11, 12, 13, 14, 15}, id="more than a socket: all of one, then nearby"),
    pytest.param({"count": 2, "bind": "spread"}, {14, 15}, id="spread: two cores of one cache"),
    pytest.param({"count": 3, "bind": "spread"}, {13, 14, 15}, id="spread: three cores of one socket"),
    pytest.param({"count": 3, "bind": "full-cores"}, set(), id="full cores: no half of one"),
    pytest.param({"count": 2, "bind": "full-cores", "free": frozenset({1, 5, 7})}, set(), id="full cores: no core"),
    pytest.param({"count": 4, "had": frozenset({0, 8})}, {0, 1, 8, 9}, id="what was had, and what is next to it"),
    pytest.param({"count": 2, "had": frozenset({1})}, {1, 9}, id="the sibling of what was had"),
    pytest.param({"count": 2, "had": frozenset({0, 1, 8, 9})}, {1, 9}, id="less: a whole core of what was had"),
    pytest.param({"count": 2, "had": frozenset({0, 8}), "free": ALL - {0}}, {8, 9}, id="what is gone is replaced"),
    pytest.param({"count": 17}, set(), id="more than there is"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "expected"), CASES)
def test_cpus_that_are_picked(asked: dict[str, object], expected: set[int]) -> None:
    assert picked(**asked) == expected  # type: ignore[arg-type]


machines = st.builds(
    build.topology, st.integers(1, 8), st.integers(1, 3), per_l3=st.integers(1, 4), per_socket=st.integers(1, 8)
)
binds = st.sampled_from(["", "full-cores", "spread"])


@given(machines, st.data(), binds)
def test_as_many_as_asked_for_of_the_free_ones_or_none(machine: Topology, data: st.DataObject, bind: str) -> None:
    some = st.frozensets(st.sampled_from(sorted(machine.cpus)))
    free, had, count = data.draw(some), data.draw(some), data.draw(st.integers(1, 12))
    options = {"bind": bind} if bind else {}
    picked = pick(count, free, Machine(machine.cpus, machine), had=had, **options)  # type: ignore[arg-type]
    assert picked <= free
    if bind == "full-cores":
        assert all(machine.siblings(cpu) <= picked for cpu in picked)
    else:
        assert len(picked) == (count if count <= len(free) else 0)
        kept = len(picked & had)
        assert not picked or kept == min(count, len(free & had)), "whoever has CPUs keeps them"


@given(machines, st.data())
def test_no_more_cores_are_split_than_the_number_needs(machine: Topology, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(machine.cpus)))
    picked = pick(count, machine.cpus, Machine(machine.cpus, machine))
    threads = len(machine.siblings(0))
    split = [core for core in machine.cores(picked).values() if len(core) < threads]
    assert len(split) == (1 if count % threads else 0)
