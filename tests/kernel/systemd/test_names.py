"""How workloads become unit names, and cgroup paths units."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.errors import Invalid
from j10ce.kernel.systemd.spelling import TABLE, properties
from j10ce.kernel.systemd.units import UNSET, Units, escape, object_path, scope_name, slice_name
from j10ce.model.knob import Setting, Value, workload
from j10ce.testing.fake_systemd import FakeSystemd

names = st.text(min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        pytest.param("web", "web", id="plain"),
        pytest.param("web-1.example", "web-1.example", id="dashes and dots stay"),
        pytest.param(".hidden", r"\x2ehidden", id="no leading dot"),
        pytest.param("a/b c", r"a\x2fb\x20c", id="nothing that could be a path"),
        pytest.param("ü", r"\xc3\xbc", id="bytes of UTF-8"),
        pytest.param("it's", r"it\x27s", id="nothing that ends a match rule"),
    ],
)
def test_escape_follows_systemd(name: str, escaped: str) -> None:
    assert escape(name) == escaped


def test_a_dash_in_a_slice_would_mean_nesting() -> None:
    assert slice_name("my-top", "sensitive") == r"my\x2dtop-sensitive.slice"


@given(st.tuples(names, names, names), st.tuples(names, names, names))
def test_different_workloads_have_different_units(a: tuple[str, str, str], b: tuple[str, str, str]) -> None:
    assert (scope_name(*a) == scope_name(*b)) == (a == b)


@given(names, names)
def test_a_unit_name_is_one_step_of_a_path(namespace: str, name: str) -> None:
    unit = scope_name("j10ce", namespace, name)
    assert "/" not in unit
    assert "'" not in unit
    assert unit.isascii()


def test_a_name_that_systemd_cannot_take_is_invalid() -> None:
    with pytest.raises(Invalid, match="at most 255"):
        scope_name("j10ce", "default", "x" * 250)


def test_object_paths_escape_as_systemd_does() -> None:
    assert object_path("1-a.service") == "/org/freedesktop/systemd1/unit/_31_2da_2eservice"


@pytest.mark.parametrize(
    ("root", "path", "unit"),
    [
        pytest.param("", "system.slice/db.service", "db.service", id="a service"),
        pytest.param("", "j10ce.slice/j10ce-sensitive.slice", "j10ce-sensitive.slice", id="a slice"),
        pytest.param("", "init.scope", "init.scope", id="a scope at the top"),
        pytest.param("", "system.slice/_cpu.service", "cpu.service", id="a name that looks like a kernel file"),
        pytest.param("", "", "", id="the root is no unit of ours"),
        pytest.param("", "system.slice/docker.service/abc", "", id="below a unit"),
        pytest.param("", "user.slice/user@7.service/app.slice/x.service", "", id="a unit of a user's manager"),
        pytest.param("", "kubepods/pod1", "", id="plain directories"),
        pytest.param("u.slice/user@7.service", "u.slice/user@7.service/app.slice/x.service", "x.service", id="its own"),
        pytest.param("u.slice/user@7.service", "u.slice/user@7.service", "", id="the manager itself"),
        pytest.param("u.slice/user@7.service", "system.slice/db.service", "", id="a unit of the system's manager"),
    ],
)
def test_unit_of_a_cgroup(tmp_path: Path, root: str, path: str, unit: str) -> None:
    assert Units(FakeSystemd(tmp_path, control_group=root)).unit_at(path) == unit


@pytest.mark.parametrize(
    ("wanted", "spelled"),
    [
        pytest.param({"cpu.weight": 2048.0}, {"CPUWeight": 200}, id="shares to weight"),
        pytest.param({"cpu.idle": 1.0}, {"CPUWeight": 0}, id="idle is weight zero"),
        pytest.param({"cpu.idle": 0.0}, {"CPUWeight": UNSET}, id="no longer idle"),
        pytest.param({"cpu.idle": 0.0, "cpu.weight": 512.0}, {"CPUWeight": 50}, id="no longer idle, with a weight"),
        pytest.param({"cpu.idle": 1.0, "cpu.weight": 512.0}, {"CPUWeight": 0}, id="idle has no weight"),
        pytest.param({"cpu.max": 50_000.0}, {"CPUQuotaPerSecUSec": 500_000}, id="half a CPU"),
        pytest.param({"cpu.max": float("inf")}, {"CPUQuotaPerSecUSec": UNSET}, id="no quota"),
        pytest.param({"memory.max": float("inf")}, {"MemoryMax": UNSET}, id="no limit"),
        pytest.param({"memory.min": 0.0}, {"MemoryMin": 0}, id="no floor"),
        pytest.param({"cpuset.cpus": frozenset({0, 9})}, {"AllowedCPUs": b"\x01\x02"}, id="lowest byte first"),
        pytest.param({"cpuset.cpus": frozenset[int]()}, {"AllowedCPUs": b""}, id="no CPUs of its own"),
        pytest.param({"cpu.max.burst": 5.0}, {}, id="systemd knows no burst"),
    ],
)
def test_spelling_as_properties(wanted: dict[str, Value], spelled: dict[str, object]) -> None:
    settings = {Setting(workload("default", "web"), knob): value for knob, value in wanted.items()}
    assert {name: typed.value for name, typed in properties(settings).items()} == spelled


@pytest.mark.parametrize("knob", sorted(TABLE))
def test_what_is_spelled_can_be_read_again(knob: str) -> None:
    value: Value = frozenset({1, 3}) if knob == "cpuset.cpus" else 1.0 if knob == "cpu.idle" else 4096.0
    row = TABLE[knob]
    assert row.parse(row.raw(row.typed(row.spell(value)).value)) == value
