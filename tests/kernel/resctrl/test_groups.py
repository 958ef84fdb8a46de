"""Groups of resctrl go the way of every target: made, valued, filled with tasks, noticed, given back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.host.resctrl import examine, mask, of_mask, schemata
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.kernel.resctrl.estate import ResctrlEstate
from j10ce.kernel.resctrl.files import ResctrlFiles
from j10ce.kernel.resctrl.membership import ResctrlMembership
from j10ce.kernel.resctrl.schemata import Schemata
from j10ce.kernel.tasks.backend import TaskBackend
from j10ce.model.knob import Setting, Value, group, resctrl
from j10ce.model.machine.cache import Bandwidth, CacheControl, Ways
from j10ce.model.plan import Applied, Change, Gone, Make, Outcome, Plan, Refused, Remove, ValueChange
from j10ce.model.workload import Handle, Workload
from j10ce.testing.beside.fake_resctrl import FakeResctrl
from j10ce.testing.beside.fake_tasks import FakeTasks
from j10ce.testing.fake_kernel import FakeKernel

BE = resctrl("j10ce-be")
AT = Handle("j10ce-be")
WAYS, RATE = Setting(BE, "resctrl.l3", "1"), Setting(BE, "resctrl.mb", "0")
PATH = "kubepods/pod1"
POD = Workload("shop", "batch", handle=Handle(PATH, made=False))
MEMBER = Setting(POD.target, "resctrl.group")
MADE: tuple[Change, ...] = (
    Make(BE, "j10ce-be", "test"),
    ValueChange(WAYS, None, frozenset(range(6)), "cache", "test"),
    ValueChange(RATE, None, 50.0, "cache", "test"),
    ValueChange(MEMBER, "", "j10ce-be", "cache", "test"),
)


class Bench:
    """A machine with cache groups; `start` is another agent, which has the journal alone."""

    def __init__(self, folder: Path, **machine: int) -> None:
        self.folder, self.tasks, self.cgroups = folder, FakeTasks(folder), FakeKernel()
        self.caches = FakeResctrl(self.tasks, **machine)
        self.cgroups.adopt(group("kubepods"), "kubepods")
        self.cgroups.adopt(POD.target, PATH)
        self.tasks.start(PATH)
        self.tasks.now += 1
        self.start()

    def start(self) -> None:
        threads = TaskBackend(
            self.tasks.roll, [ResctrlMembership(self.caches)], proc=str(self.tasks.proc), clock=lambda: self.tasks.now
        )
        backends = [self.cgroups, Schemata(self.caches, self.caches.control()), threads]
        journal, estates = Journal.open(self.folder / "journal", "this boot"), [ResctrlEstate(self.caches)]
        self.kernel = Kernel(
            self.cgroups, backends, journal, guard=Guard(), estates=estates, clock=lambda: self.tasks.now
        )
        self.kernel.track([POD])

    def apply(self, *changes: Change) -> Outcome:
        return self.kernel.apply(Plan(changes))

    def homes(self) -> set[str]:
        return {t.group for t in self.tasks.alive.values()}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_group_is_made_valued_and_filled(bench: Bench) -> None:
    assert not bench.apply(*MADE).refused()
    assert bench.caches.read("j10ce-be/schemata") == "    L3:0=fffff;1=3f\n    MB:0=50;1=100\n"
    assert bench.homes() == {"j10ce-be"}
    bench.tasks.now += 1
    bench.tasks.start(PATH)
    bench.apply()
    assert bench.homes() == {"j10ce-be"}


def test_a_revert_leaves_no_group_and_everyone_in_the_roots(bench: Bench) -> None:
    bench.apply(*MADE)
    bench.kernel.close()
    bench.start()
    assert bench.kernel.settings[WAYS] == frozenset(range(6))
    assert not bench.kernel.revert().refused()
    assert bench.caches.groups() == []
    assert bench.homes() == {""}


def test_a_group_that_was_there_before_us_is_not_removed(bench: Bench) -> None:
    bench.caches.make("theirs")
    refused = bench.apply(Make(resctrl("theirs"), "theirs", "test")).refused()
    assert [r.reason for _, r in refused] == ["someone else has made the group 'theirs'"]
    assert bench.apply(Remove(resctrl("theirs"), "test")).refused()
    bench.kernel.revert()
    assert bench.caches.groups() == ["theirs"]


def test_a_full_cpu_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path, closids=1)
    refused = bench.apply(Make(BE, "j10ce-be", "test")).refused()
    assert [r.reason for _, r in refused] == ["no group 'j10ce-be': kernel said ENOSPC; Out of CLOSIDs"]


def test_ways_that_a_group_of_others_has_for_itself_are_neither_given_nor_taken(tmp_path: Path) -> None:
    """What is left is side by side, and a group that finds no way at all is not made."""
    bench = Bench(tmp_path, ways=8)
    bench.caches.make("theirs")
    bench.caches.by_name[""].held["L3"] = {"0": 0x0F, "1": 0x0F}
    bench.caches.write("theirs/schemata", "L3:0=30;1=30")
    bench.caches.by_name["theirs"].exclusive = True
    assert not bench.apply(Make(BE, "j10ce-be", "test")).refused()
    assert bench.caches.by_name["j10ce-be"].held["L3"] == {"0": 0x0F, "1": 0x0F}
    refused = bench.apply(ValueChange(WAYS, None, frozenset({4}), "test", "test")).refused()
    assert ["Overlaps with exclusive group" in r.reason for _, r in refused] == [True]
    for line, why in (("L3:0=38", "Overlaps with other group"), ("L3:0=30;0=30", "Duplicate domain 0")):
        answer = bench.caches.write("theirs/schemata", line)
        assert isinstance(answer, Refused)
        assert why in answer.reason
    bench.caches.by_name["theirs"].held["L3"] = {"0": 0xFF, "1": 0xFF}
    assert isinstance(answer := bench.caches.make("late"), Refused)
    assert "No space on L3:0" in answer.reason


def test_a_group_that_someone_else_removes_is_gone_with_its_values(bench: Bench) -> None:
    bench.apply(*MADE)
    bench.kernel.track([POD])
    bench.tasks.now += 1
    bench.caches.vanish("j10ce-be")
    assert [d.theirs for d in bench.kernel.read_now([POD.target])] == [""]
    bench.kernel.track([POD])
    assert WAYS not in bench.kernel.settings
    assert not bench.apply(*MADE).refused()
    assert bench.homes() == {"j10ce-be"}


def test_a_file_system_that_is_unmounted_takes_nothing_and_breaks_nothing(bench: Bench) -> None:
    bench.apply(*MADE)
    bench.caches.mounted = False
    for task in bench.tasks.alive.values():
        task.group = ""
    bench.tasks.now += 1
    bench.kernel.track([POD])
    assert bench.apply(*MADE).refused()
    bench.kernel.revert()
    assert bench.homes() == {""}


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        pytest.param(WAYS, frozenset({0, 2}), "non-consecutive", id="gap"),
        pytest.param(WAYS, frozenset(), "out of range", id="none"),
        pytest.param(WAYS, frozenset({20}), "out of range", id="no such way"),
        pytest.param(WAYS, frozenset({3}), "at least 2 bits", id="too few"),
        pytest.param(RATE, 5000.0, "", id="more than all"),
        pytest.param(RATE, 0.0, "out of range", id="nothing"),
        pytest.param(WAYS._replace(instance="7"), frozenset({0, 1}), "has no instance '7' here; it has 0, 1", id="id"),
        pytest.param(WAYS, "half", "does not take half", id="text"),
    ],
)
def test_what_the_kernel_refuses_is_said_in_its_words(setting: Setting, value: Value, why: str) -> None:
    caches = FakeResctrl(least=2)
    caches.make("j10ce-be")
    backend = Schemata(caches, caches.control())
    answer = backend.write(setting, value, AT)
    if not why:
        assert answer == Applied(100.0)
    else:
        assert isinstance(answer, Refused)
        assert why in answer.reason


def test_a_cpu_with_sparse_masks_takes_gaps_and_one_with_code_and_data_apart_gets_both() -> None:
    caches = FakeResctrl(lines=("L3CODE", "L3DATA"), sparse=True)
    caches.make("j10ce-be")
    backend = Schemata(caches, caches.control())
    assert backend.write(WAYS, frozenset({0, 2}), AT) == Applied(frozenset({0, 2}))
    assert caches.read("j10ce-be/schemata") == "L3CODE:0=fffff;1=5\nL3DATA:0=fffff;1=5\n"
    assert not backend.knobs()["resctrl.mb"].ok


def test_bandwidth_is_rounded_as_the_kernel_does() -> None:
    caches = FakeResctrl()
    caches.make("j10ce-be")
    backend = Schemata(caches, caches.control())
    assert backend.quantise(RATE, 41.0) == 50.0
    assert backend.write(RATE, 41.0, AT) == Applied(50.0)
    assert backend.read(RATE, AT) == 50.0


def test_a_group_that_is_gone_is_gone() -> None:
    caches = FakeResctrl()
    backend = Schemata(caches, caches.control())
    assert backend.read(WAYS, AT) is None
    assert backend.save(WAYS, AT) is None
    assert backend.write(WAYS, frozenset({0}), AT) == Gone()
    assert backend.instances("resctrl.l3", AT) == ()


@pytest.mark.parametrize(
    ("caches", "control"),
    [
        pytest.param(
            FakeResctrl(ways=12, closids=8),
            CacheControl(Ways(("0", "1"), 12), Bandwidth(("0", "1")), 7),
            id="Intel",
        ),
        pytest.param(FakeResctrl(lines=["L3"]), CacheControl(Ways(("0", "1"), 20), None, 15), id="CAT only"),
        pytest.param(FakeResctrl(lines=["MB"]), CacheControl(None, Bandwidth(("0", "1")), 15), id="MBA only"),
        pytest.param(
            FakeResctrl(lines=["MB"], amd=True),
            CacheControl(None, Bandwidth(("0", "1"), "eighths of GB/s", 1, 1, 2048), 15),
            id="AMD",
        ),
    ],
)
def test_what_can_be_divided_is_read_from_what_the_kernel_offers(caches: FakeResctrl, control: CacheControl) -> None:
    assert caches.control() == control


def test_a_machine_without_the_file_system_says_what_it_needs(tmp_path: Path) -> None:
    absent = ResctrlFiles(str(tmp_path / "none")).support()
    assert not absent.ok
    assert "Intel RDT" in absent.needs
    unmounted = ResctrlFiles(str(tmp_path)).support()
    assert unmounted.needs == f"mount -t resctrl resctrl {tmp_path}"
    assert Schemata(ResctrlFiles(str(tmp_path)), CacheControl()).knobs()["resctrl.l3"] == unmounted


def test_files_are_read_and_written_below_the_root(tmp_path: Path) -> None:
    """No kernel behind them: that folders and files are those that it has."""
    (tmp_path / "schemata").write_text("L3:0=ff\n")
    files = ResctrlFiles(str(tmp_path))
    (tmp_path / "info").mkdir()
    assert files.support().ok
    assert files.make("be") is None
    assert files.groups() == ["be"]
    assert isinstance(files.make("be"), Refused)
    (tmp_path / "be" / "tasks").write_text("")
    assert files.move(17, "be") is None
    assert (tmp_path / "be" / "tasks").read_text() == "17\n"
    assert isinstance(files.move(17, "none"), Refused)
    assert isinstance(files.write("be/schemata", "L3:0=1"), Refused)
    (tmp_path / "be" / "tasks").unlink()
    assert files.remove("be") is None
    assert files.remove("be") == Gone()
    assert files.identity("be") is None


@given(st.frozensets(st.integers(0, 63)))
def test_a_mask_and_its_ways_are_one(ways: frozenset[int]) -> None:
    assert of_mask(mask(ways)) == ways


@given(st.text())
def test_whatever_a_file_says_nothing_breaks(text: str) -> None:
    dict(schemata(text))
    examine(lambda path: text)
    examine(lambda path: "L3:0=f;1=f\nMB:0=100" if path == "schemata" else text)
