"""Names become paths that stay inside; nothing outside our top group is made or removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.errors import Denied, Invalid
from j10ce.host.mounts import Hierarchies, inside
from j10ce.kernel.cgroup.tree import PlainTree, escape
from j10ce.model.knob import group, workload
from j10ce.model.plan import Applied, Refused
from j10ce.model.workload import Handle
from j10ce.testing.cgroup_tree import cgroup_tree, fresh

NAMES = st.text(min_size=1, max_size=40)


@pytest.fixture
def tree(tmp_path: Path) -> PlainTree:
    return PlainTree(cgroup_tree(tmp_path, {**fresh(1), "theirs": fresh(1)}, v1=("cpu", "cpuset", "memory")))


def test_places_follow_tier_namespace_and_name(tree: PlainTree) -> None:
    assert tree.path_for("", "", "") == Handle("j10ce")
    assert tree.path_for("besteffort", "", "") == Handle("j10ce_besteffort")
    assert tree.path_for("besteffort", "default", "crunch") == Handle("j10ce_besteffort/default_crunch")


@given(tier=NAMES, namespace=NAMES, name=NAMES)
def test_no_name_escapes(tier: str, namespace: str, name: str) -> None:
    tree = PlainTree(Hierarchies.discover(""))
    try:
        at = tree.path_for(tier, namespace, name)
    except Invalid:
        return
    assert inside(at.path) == at.path
    assert len(at.path.split("/")) == 3
    assert tree.owns(at)


@given(one=st.tuples(NAMES, NAMES), other=st.tuples(NAMES, NAMES))
def test_different_names_have_different_places(one: tuple[str, str], other: tuple[str, str]) -> None:
    same = [f"{escape(ns)}_{escape(name)}" for ns, name in (one, other)]
    assert (same[0] == same[1]) is (one == other)


@pytest.mark.parametrize("name", ["..", ".", "/etc", "a/../../b", "a\0b", "cgroup.procs\n", "ä", " "])
def test_hostile_names_are_spelled_out(name: str) -> None:
    assert not set(escape(name)) & set("/\0\n ")
    assert not escape(name).startswith(".")


def test_a_name_too_long_for_a_directory_is_invalid(tree: PlainTree) -> None:
    with pytest.raises(Invalid, match="at most 255"):
        tree.path_for("standard", "default", "x" * 300)


def test_a_top_that_escapes_is_denied(tmp_path: Path) -> None:
    with pytest.raises(Denied):
        PlainTree(cgroup_tree(tmp_path, {}), "../x")


def test_a_group_is_where_its_name_says(tree: PlainTree) -> None:
    assert tree.place(group("a/b")) == Handle("a/b")
    with pytest.raises(Denied):
        tree.place(group("a/../../b"))


def test_every_hierarchy_in_use_gets_the_cgroup(tree: PlainTree, tmp_path: Path) -> None:
    assert isinstance(tree.make(group("j10ce"), Handle("j10ce")), Applied)
    assert {p.parent.name for p in tmp_path.glob("*/j10ce")} == {"cpu", "cpuset", "memory"}


def test_a_cgroup_half_made_is_completed(tree: PlainTree, tmp_path: Path) -> None:
    (tmp_path / "cpu/j10ce").mkdir()
    assert isinstance(tree.make(workload("a", "b"), Handle("j10ce/web")), Applied)
    assert (tmp_path / "memory/j10ce/web").is_dir()


@pytest.mark.parametrize("path", ["theirs", "theirs/web", "j10ceX"])
def test_nothing_is_made_or_removed_elsewhere(tree: PlainTree, tmp_path: Path, path: str) -> None:
    assert isinstance(tree.make(group(path), Handle(path)), Refused)
    assert isinstance(tree.remove(group(path)), Refused)
    assert not (tmp_path / "cpu/theirs/web").exists()
    assert (tmp_path / "cpu/theirs").exists()


@pytest.mark.parametrize("pid", [0, 1, 2])
def test_the_systems_own_processes_are_never_moved(tree: PlainTree, pid: int) -> None:
    tree.make(group("j10ce"), Handle("j10ce"))
    assert isinstance(tree.join(group("j10ce"), pid), Refused)


def test_a_kernel_file_is_no_cgroup(tree: PlainTree, tmp_path: Path) -> None:
    (tmp_path / "cpu/j10ce").write_text("")
    result = tree.make(group("j10ce"), Handle("j10ce"))
    assert isinstance(result, Refused)
    assert "kernel file" in result.reason


def test_our_own_process_may_join(tree: PlainTree, tmp_path: Path) -> None:
    tree.make(group("j10ce"), Handle("j10ce"))
    for mount in tmp_path.iterdir():
        (mount / "j10ce/cgroup.procs").write_text("")
    assert isinstance(tree.join(group("j10ce"), os.getpid()), Applied)
    assert (tmp_path / "memory/j10ce/cgroup.procs").read_text() == f"{os.getpid()}\n"
