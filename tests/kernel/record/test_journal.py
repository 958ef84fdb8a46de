"""The journal survives a kill, knows its boot, and admits damage instead of acting on it."""

from __future__ import annotations

import math
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.errors import Corrupt, Denied
from j10ce.kernel.record.entry import Enabled, Entry, Forgot, Header, Made, Original, to_line, to_spelled, wrote
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import ROOT, Setting, Value, group, workload
from j10ce.model.workload import Handle
from tests.kernel.rig import full_disk

BOOT = "this boot"
WEB = workload("default", "web")
WEIGHT = Setting(WEB, "cpu.weight")
AT = Handle("j10ce/standard/default_web")


def original(setting: Setting = WEIGHT, value: Value = 1024.0, identity: int = 7) -> Original:
    return Original(*setting, AT, identity, "cgroup2", '{"cpu.weight":"100"}', to_spelled(value))


ENTRIES: list[Entry] = [
    Enabled(ROOT, Handle(""), 1, ["cpu"]),
    Made(group("j10ce"), Handle("j10ce")),
    original(),
    wrote(WEIGHT, 512.0, "floors"),
    original(Setting(WEB, "cpuset.cpus"), frozenset({0, 1})),
    original(Setting(WEB, "memory.max"), math.inf),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "journal"


@pytest.fixture
def written(path: Path) -> Path:
    journal = Journal.open(path, BOOT)
    journal.add(*ENTRIES)
    journal.close()
    return path


def test_a_journal_is_continued(written: Path) -> None:
    Journal.open(written, BOOT).close()  # which writes it anew
    journal = Journal.open(written, BOOT)
    assert journal.original(WEIGHT) == 1024.0
    assert journal.ours(WEIGHT) == (512.0,)
    assert journal.owners[WEIGHT] == "floors"
    assert journal.original(Setting(WEB, "cpuset.cpus")) == frozenset({0, 1})
    assert journal.original(Setting(WEB, "memory.max")) == math.inf
    assert journal.made.keys() == {group("j10ce")}
    assert journal.enabled[ROOT].controllers == ["cpu"]


def test_only_its_owner_may_read_it(written: Path) -> None:
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


@given(cut=st.integers(min_value=0, max_value=10_000))
def test_a_torn_end_costs_only_what_was_torn(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("torn") / "journal"
    header = to_line(Header(1, BOOT))
    lines = [to_line(e) for e in ENTRIES]
    path.write_bytes((header + b"".join(lines))[: len(header) + cut])
    whole = sum(1 for n in range(len(lines)) if sum(map(len, lines[: n + 1])) <= cut)
    journal = Journal.open(path, BOOT)
    expected = [e.setting for e in ENTRIES[:whole] if isinstance(e, Original)]
    assert list(journal.originals) == expected


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data.replace(b"1024", b"1025"), id="a changed digit"),
        pytest.param(lambda data: data.replace(b"\n", b"\nrubbish\n", 2), id="foreign lines"),
        pytest.param(lambda data: b"\n".join(data.split(b"\n")[1:]), id="no header"),
        pytest.param(lambda data: data[:20], id="cut within the header"),
        pytest.param(lambda data: b"", id="emptied"),
        pytest.param(lambda data: bytes(len(data)), id="zeros"),
        pytest.param(lambda data: to_line(Header(99, BOOT)) + data, id="a later format"),
    ],
)
def test_damage_is_admitted_and_a_copy_kept(written: Path, damage: object) -> None:
    assert callable(damage)
    damaged = damage(written.read_bytes())
    written.write_bytes(damaged)
    with pytest.raises(Corrupt, match=r"journal\.damaged-1"):
        Journal.open(written, BOOT)
    assert written.with_name("journal.damaged-1").read_bytes() == damaged
    assert written.read_bytes() == damaged
    with pytest.raises(Corrupt, match=r"journal\.damaged-2"):
        Journal.open(written, BOOT)


def test_salvage_keeps_every_whole_line(written: Path) -> None:
    written.write_bytes(written.read_bytes().replace(b'"owner":"floors"', b'"owner":"flOOrs"'))
    journal = Journal.open(written, BOOT, salvage=True)
    assert journal.original(WEIGHT) == 1024.0
    assert journal.ours(WEIGHT) == ()
    assert written.with_name("journal.damaged-1").exists()
    assert Journal.open(written, BOOT).original(WEIGHT) == 1024.0


def test_a_journal_of_another_boot_is_void(written: Path) -> None:
    journal = Journal.open(written, "another boot")
    assert not journal.originals
    assert not journal.made
    assert not journal.enabled


def test_what_was_given_back_is_forgotten(written: Path) -> None:
    journal = Journal.open(written, BOOT)
    journal.add(Forgot(*WEIGHT), Forgot(group("j10ce")))
    journal.close()
    journal = Journal.open(written, BOOT)
    assert WEIGHT not in journal.originals
    assert group("j10ce") not in journal.made
    assert Setting(WEB, "cpuset.cpus") in journal.originals


def test_another_cgroup_at_the_same_path_starts_afresh(written: Path) -> None:
    journal = Journal.open(written, BOOT)
    journal.add(original(value=2048.0, identity=8))
    assert journal.original(WEIGHT) == 2048.0
    assert journal.ours(WEIGHT) == ()
    assert list(journal.originals)[-1] == WEIGHT  # what was written last goes back first


def test_a_long_history_does_not_make_a_long_file(written: Path) -> None:
    journal = Journal.open(written, BOOT)
    for n in range(20_000):
        journal.add(wrote(WEIGHT, float(n), "floors"))
    assert written.stat().st_size < 2 << 20
    journal.close()
    journal = Journal.open(written, BOOT)
    assert journal.ours(WEIGHT) == (19_998.0, 19_999.0)
    assert written.stat().st_size < 2_000


def test_the_file_of_a_thousand_workloads_is_not_rewritten_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal.open(path, BOOT)
    settings = [Setting(workload("default", f"w{n}"), f"knob{k}") for n in range(1000) for k in range(7)]
    rewritten, file = 0, path.stat().st_ino

    def add(*entries: Entry) -> None:
        nonlocal rewritten, file
        journal.add(*entries)
        if (now := path.stat().st_ino) != file:
            rewritten, file = rewritten + 1, now
        assert rewritten <= 4, "each time it is twice as long as after the last"

    for setting in settings:
        at = Handle(f"j10ce/standard/default_{setting.target}")
        add(Original(*setting, at, 7, "cgroup2", "100", 1024.0), wrote(setting, 5.0, "floors"))
    for n, setting in enumerate(settings):
        add(wrote(setting, float(n), "floors"))
    assert path.stat().st_size < 8 << 20


@given(room=st.integers(min_value=0, max_value=400))
def test_a_full_disk_leaves_whole_lines(tmp_path_factory: pytest.TempPathFactory, room: int) -> None:
    path = tmp_path_factory.mktemp("full") / "journal"
    journal = Journal.open(path, BOOT)
    journal.add(*ENTRIES[:3])

    def fill() -> None:
        for n in range(10):
            journal.add(wrote(WEIGHT, float(n), "floors"))

    with full_disk(path, room), pytest.raises(OSError, match="too large"):
        fill()
    known = journal.ours(WEIGHT)
    journal.add(wrote(WEIGHT, 99.0, "floors"))
    journal.close()
    assert Journal.open(path, BOOT).ours(WEIGHT) == (*known, 99.0)[-2:]


def test_a_disk_that_is_full_at_the_start_forbids_changes(written: Path) -> None:
    before = written.read_bytes()
    with full_disk(written, -len(before) + 10), pytest.raises(Denied, match="nothing may be changed"):
        Journal.open(written, BOOT)
    assert written.read_bytes() == before
    assert Journal.open(written, BOOT).original(WEIGHT) == 1024.0


VALUES = st.one_of(
    st.floats(allow_nan=False, min_value=0), st.just(math.inf), st.frozensets(st.integers(0, 4095)), st.text()
)


@given(value=VALUES)
def test_every_value_survives_the_journal(tmp_path_factory: pytest.TempPathFactory, value: Value) -> None:
    path = tmp_path_factory.mktemp("values") / "journal"
    journal = Journal.open(path, BOOT)
    journal.add(original(value=value), wrote(WEIGHT, value, "test"))
    journal.close()
    again = Journal.open(path, BOOT)
    assert again.original(WEIGHT) == value
    assert again.ours(WEIGHT) == (value,)


def test_where_a_cgroup_is_reads_the_same_for_agents_of_every_version() -> None:
    """A package that is rolled back within a boot finds the journal of the newer agent, and must have every path."""
    assert b'"at":{"path":""}' in to_line(Enabled(ROOT, Handle(""), 1, ["cpu"]))
    assert b'"at":{"path":"a","unit":"a.service"}' in to_line(Made(group("a"), Handle("a", "a.service")))


def test_a_kill_while_a_cgroup_gets_another_name_loses_no_original(written: Path) -> None:
    journal = Journal.open(written, BOOT)
    journal.add(Enabled(WEB, AT, 7, ["memory"]))
    before = written.stat().st_size
    journal.rename(WEB)
    journal.close()
    whole, there = written.read_bytes(), group(AT.path)
    for end in range(before, len(whole) + 1):
        written.write_bytes(whole[:end])
        journal = Journal.open(written, BOOT)
        names = [name for name in (WEB, there) if journal.ours(Setting(name, "cpu.weight")) == (512.0,)]
        assert any(journal.original(Setting(name, "memory.max")) == math.inf for name in names), end
        assert any("memory" in journal.enabled[name].controllers for name in names if name in journal.enabled), end
        journal.close()
    assert names == [there]


def test_controllers_that_a_cgroup_got_under_its_old_name_are_withdrawn_in_the_end(written: Path) -> None:
    journal = Journal.open(written, BOOT)
    journal.add(Enabled(WEB, AT, 7, ["memory"]))
    journal.rename(WEB, workload("default", "again"))
    assert journal.enabled[workload("default", "again")].controllers == ["memory"]
    assert WEB not in journal.enabled
