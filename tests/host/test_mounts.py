"""The mount table decides where each controller is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.errors import Denied, Unsupported
from j10ce.host.mounts import Hierarchies, inside

V1 = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset,clone_children
35 31 0:32 / /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
"""


def v2(path: Path, options: str = "rw,nsdelegate", controllers: str = "cpuset cpu memory") -> str:
    path.mkdir()
    (path / "cgroup.controllers").write_text(f"{controllers}\n")
    return f"41 31 0:38 / {path} rw,relatime - cgroup2 cgroup2 {options}\n"


def test_v1_controllers_that_share_a_mount_share_a_hierarchy() -> None:
    hierarchies = Hierarchies.discover(V1)
    assert hierarchies.mode == "v1"
    assert hierarchies.mount("cpu") is hierarchies.mount("cpuacct")
    assert hierarchies.available() == {"cpu": 1, "cpuacct": 1, "cpuset": 1, "memory": 1}
    assert list(hierarchies.in_use()) == ["cpu", "cpuset", "memory"]


def test_the_freezer_is_a_hierarchy_on_v1_and_a_part_of_every_cgroup_on_v2(tmp_path: Path) -> None:
    freezer = "33 31 0:30 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n"
    unified = v2(tmp_path / "cg", controllers="")
    assert list(Hierarchies.discover(V1 + freezer).in_use()) == ["cpu", "cpuset", "memory", "freezer"]
    assert Hierarchies.discover(V1 + freezer + unified).version("freezer") == 1
    assert Hierarchies.discover(unified).version("freezer") == 2
    assert Hierarchies.discover(V1).version("freezer") is None


def test_a_named_hierarchy_carries_no_controller() -> None:
    assert "name=systemd" not in Hierarchies.discover(V1).available()


def test_a_read_only_mount_is_known_as_such() -> None:
    mount = Hierarchies.discover(V1).mount("memory")
    assert mount is not None
    assert not mount.writable


def test_unified_alone_is_v2_and_serves_its_own_controllers(tmp_path: Path) -> None:
    hierarchies = Hierarchies.discover(v2(tmp_path / "cg", "rw,nsdelegate,memory_recursiveprot"))
    assert hierarchies.mode == "v2"
    assert hierarchies.recursive_protection
    assert hierarchies.available() == {"cpu": 2, "cpuset": 2, "memory": 2}
    assert hierarchies.file("memory", "a/b", "memory.low") == f"{tmp_path}/cg/a/b/memory.low"


def test_where_systemd_is_the_init_its_own_tree_on_a_hybrid_host_is_left_alone(tmp_path: Path) -> None:
    """It knows services and sessions by the cgroup2 tree; a process that is moved there is lost to its unit."""
    text = V1 + v2(tmp_path / "cg", controllers="")
    assert "unified" in Hierarchies.discover(text, booted=f"{tmp_path}/absent").in_use()
    assert list(Hierarchies.discover(text, booted=str(tmp_path)).in_use()) == ["cpu", "cpuset", "memory"]


def test_hybrid_resolves_each_controller_by_itself(tmp_path: Path) -> None:
    text = "".join(line for line in V1.splitlines(keepends=True) if "rw,memory" not in line)
    hierarchies = Hierarchies.discover(text + v2(tmp_path / "cg", controllers="memory io"))
    assert hierarchies.mode == "hybrid"
    assert (hierarchies.version("cpu"), hierarchies.version("memory")) == (1, 2)
    assert list(hierarchies.in_use()) == ["cpu", "cpuset", "memory"]
    assert hierarchies.directory("unified", "") == f"{tmp_path}/cg"


def test_the_whole_hierarchy_is_preferred_to_a_bind_mount_of_a_part(tmp_path: Path) -> None:
    text = v2(tmp_path / "whole") + f"50 31 0:38 /docker/1 {tmp_path} rw - cgroup2 cgroup2 rw\n"
    hierarchies = Hierarchies.discover(text)
    assert hierarchies.unified is not None
    assert hierarchies.unified.path == f"{tmp_path}/whole"


def test_a_later_mount_at_the_same_place_hides_the_earlier(tmp_path: Path) -> None:
    text = v2(tmp_path / "cg") + f"51 41 0:38 / {tmp_path}/cg ro,relatime - cgroup2 cgroup2 rw\n"
    hierarchies = Hierarchies.discover(text)
    assert hierarchies.unified is not None
    assert not hierarchies.unified.writable


def test_blanks_in_a_mount_point_are_unescaped(tmp_path: Path) -> None:
    text = v2(tmp_path / "c g").replace("/c g ", "/c\\040g ")
    assert Hierarchies.discover(text).directory("cpu", "") == f"{tmp_path}/c g"


def test_an_absent_controller_is_unsupported_and_says_what_it_needs() -> None:
    with pytest.raises(Unsupported, match="io mounted"):
        Hierarchies.discover(V1).file("io", "a", "io.max")


@pytest.mark.parametrize("path", ["..", "a/../b", "/etc", "a//b", "./a", "a/", "a\0b", "a\nb"])
def test_no_path_leaves_the_mount(path: str) -> None:
    with pytest.raises(Denied):
        inside(path)
    with pytest.raises(Denied):
        Hierarchies.discover(V1).directory("cpu", path)


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "x\0"])
def test_no_file_name_leaves_its_cgroup(name: str) -> None:
    with pytest.raises(Denied):
        Hierarchies.discover(V1).file("cpu", "a", name)


def test_garbage_lines_are_no_mounts() -> None:
    assert Hierarchies.discover("x\n - \n1 2 3 - cgroup\n").mode == "v1"


def test_this_machine_has_a_hierarchy_with_a_cpu_controller() -> None:
    mount = Hierarchies.discover().mount("cpu")
    assert mount is not None
    assert Path(mount.path, "cgroup.procs").exists()


@pytest.mark.parametrize("odd", ["\x0c", "\x1c", "\x85", "\u2028", "\u3000"], ids=ascii)
def test_a_mount_may_hold_any_blank_that_the_kernel_does_not_escape(tmp_path: Path, odd: str) -> None:
    text = v2(tmp_path / f"c{odd}g")
    assert Hierarchies.discover(text).directory("cpu", "") == f"{tmp_path}/c{odd}g"
