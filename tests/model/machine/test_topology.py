"""Which CPUs share a core, a cache, a memory node and a socket."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.model.machine.topology import Site, Topology, from_report, in_words, report
from j10ce.model.parts.totals import CpuGroup, TopologyReport
from j10ce.testing import build

# Two sockets of four cores, two cores a cache, siblings eight apart.
SERVER = build.topology(8, per_l3=2, per_socket=4)


def test_siblings_are_the_cpus_of_one_core() -> None:
    assert SERVER.siblings(1) == {1, 9}
    assert SERVER.siblings(9) == {1, 9}


def test_a_cpu_of_which_nothing_is_known_is_a_core_by_itself() -> None:
    assert Topology().siblings(5) == {5}
    assert Topology().cores({5, 2}) == {2: {2}, 5: {5}}
    assert Topology().by_l3({5, 2}) == {0: {2, 5}}


def test_groups_hold_only_the_cpus_that_are_asked_about() -> None:
    some = {0, 1, 8, 5}
    assert SERVER.cores(some) == {0: {0, 8}, 1: {1}, 5: {5}}
    assert SERVER.by_l3(some) == {0: {0, 1, 8}, 2: {5}}
    assert SERVER.by_numa(some) == SERVER.by_package(some) == {0: {0, 1, 8}, 1: {5}}


def test_a_report_is_short_and_says_what_is_shared() -> None:
    summary = report(SERVER)
    assert (summary.threads, summary.cores, summary.sibling_step) == (16, 8, 8)
    assert summary.sockets == (CpuGroup(id=0, cpus="0-3,8-11"), CpuGroup(id=1, cpus="4-7,12-15"))
    assert [group.cpus for group in summary.l3_caches] == ["0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"]
    words = (
        "2 sockets, 8 cores, 16 threads, 2 NUMA nodes, 4 L3 caches: 0-1,8-9 and 2-3,10-11 and 4-5,12-13 and 6-7,14-15"
    )
    assert in_words(summary) == words


def test_one_of_a_kind_is_not_listed() -> None:
    assert in_words(report(build.topology(1, 1))) == "1 socket, 1 core, 1 thread, 1 NUMA node, 1 L3 cache"


def test_cores_of_different_sizes_have_no_step() -> None:
    uneven = Topology({0: Site(0), 1: Site(0), 2: Site(2)})
    assert report(uneven).sibling_step == 0


def test_a_list_of_cpus_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="bad CPU range"):
        from_report(TopologyReport(sockets=(CpuGroup(cpus="many"),)), frozenset({0}))


machines = st.builds(
    build.topology,
    st.integers(2, 12),
    st.integers(1, 4),
    per_l3=st.integers(1, 4),
    per_socket=st.integers(1, 12),
    step=st.sampled_from([0, 1]),
)


@given(machines)
def test_a_machine_is_the_same_after_it_was_told_in_short(machine: Topology) -> None:
    assert from_report(report(machine), machine.cpus) == machine


@given(machines, st.sets(st.integers(0, 60)))
def test_every_cpu_is_in_one_group_of_every_kind(machine: Topology, among: set[int]) -> None:
    for groups in (machine.cores(among), machine.by_l3(among), machine.by_numa(among), machine.by_package(among)):
        assert sorted(cpu for group in groups.values() for cpu in group) == sorted(among)


@given(machines, st.integers(0, 60))
def test_siblings_are_each_others_siblings(machine: Topology, cpu: int) -> None:
    siblings = machine.siblings(cpu)
    assert cpu in siblings
    assert all(machine.siblings(other) == siblings for other in siblings)
