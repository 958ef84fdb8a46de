"""What is said of disks goes the way of every setting: journalled, read back, noticed, given back; by its disk."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.kernel.disk.cost import MODEL, QOS, CostFiles, canonical
from j10ce.kernel.disk.estate import DiskEstate
from j10ce.kernel.disk.files import LATENCY, WEIGHT, DiskFiles
from j10ce.kernel.disk.lines import by_disk, limit, pairs
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import Setting, Value, disk, group
from j10ce.model.machine.disk import parse_number
from j10ce.model.plan import Applied, Outcome, Plan, Refused, ValueChange
from j10ce.model.workload import Handle, Workload
from j10ce.testing.beside.fake_disks import FakeDiskEstate, FakeIo
from j10ce.testing.conformance_disks import MODEL_TEXT, QOS_TEXT
from j10ce.testing.fake_kernel import FakeKernel

PATH = "kubepods/pod1"
POD = Workload("shop", "batch", handle=Handle(PATH, made=False))
READS, WRITES = (Setting(POD.target, f"io.max.{what}", "8:0") for what in ("rbps", "wbps"))
COST = Setting(disk("8:0"), MODEL)


class Bench:
    """A machine with disks; `start` is another agent, which has the journal alone."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.io, self.cgroups = folder, FakeIo(), FakeKernel()
        for target, path in ((group("kubepods"), "kubepods"), (POD.target, PATH)):
            self.cgroups.adopt(target, path)
            self.io.make(path)
        self.start()

    def start(self) -> None:
        backends = [self.cgroups, DiskFiles(self.io), CostFiles(self.io)]
        journal, estates = Journal.open(self.folder / "journal", "this boot"), [FakeDiskEstate(self.io)]
        self.kernel = Kernel(self.cgroups, backends, journal, guard=Guard(), estates=estates)
        self.kernel.track([POD])

    def write(self, setting: Setting, value: Value) -> Outcome:
        return self.kernel.apply(Plan((ValueChange(setting, None, value, "io", "test"),)))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_disk_of_which_nothing_is_said_costs_no_setting(bench: Bench) -> None:
    assert READS not in bench.kernel.settings
    assert bench.kernel.settings[Setting(POD.target, WEIGHT)] == 100.0


def test_a_revert_by_another_agent_leaves_no_line(bench: Bench) -> None:
    for setting, value in ((READS, 1e6), (WRITES, 2e6), (COST, MODEL_TEXT), (COST._replace(knob=QOS), QOS_TEXT)):
        assert not bench.write(setting, value).refused()
    assert bench.io.read(PATH, "io.max") == "8:0 rbps=1000000 wbps=2000000 riops=max wiops=max"
    bench.kernel.close()
    bench.start()
    assert (bench.kernel.settings[READS], bench.kernel.settings[COST]) == (1e6, MODEL_TEXT)
    assert not bench.kernel.revert().refused()
    assert bench.io.read(PATH, "io.max") == ""
    assert (bench.io.read("", MODEL) or "").startswith("8:0 ctrl=auto")
    assert "enable=0" in (bench.io.read("", QOS) or "")


def test_what_somebody_else_said_of_a_disk_goes_back(bench: Bench) -> None:
    bench.io.write(PATH, "io.max", "8:0 rbps=5000 wiops=10")
    bench.kernel.close()
    bench.start()
    bench.write(READS, 1e6)
    bench.kernel.revert()
    assert bench.io.read(PATH, "io.max") == "8:0 rbps=5000 wbps=max riops=max wiops=10"


def test_a_line_that_somebody_takes_away_is_noticed(bench: Bench) -> None:
    bench.write(READS, 1e6)
    bench.io.write(PATH, "io.max", "8:0 rbps=max")
    assert [(d.setting, d.theirs) for d in bench.kernel.read_now([POD.target])] == [(READS, math.inf)]


def test_nothing_of_a_disk_that_was_taken_out_is_written_to_the_next(bench: Bench) -> None:
    bench.write(COST, MODEL_TEXT)
    bench.kernel.close()
    bench.io.replug("8:0")
    bench.start()
    bench.kernel.revert()
    assert not bench.io.read("", MODEL)


def test_a_disk_that_is_gone_takes_nothing(bench: Bench) -> None:
    bench.io.unplug("8:0")
    assert [r.reason for _, r in bench.write(READS, 1e6).refused()] == [
        f"cannot write io.max[8:0].rbps to {PATH}: this machine has no disk 8:0"
    ]
    bench.write(COST, MODEL_TEXT)
    assert not bench.io.read("", MODEL)


def test_a_partition_is_refused_with_the_way_out(bench: Bench) -> None:
    ((_, refused),) = bench.write(READS._replace(instance="8:1"), 1e6).refused()
    assert refused.reason.endswith("8:1 is a partition: name its whole disk")


def test_a_kernel_without_a_knob_says_so_once_a_cgroup_shows_it() -> None:
    offered = DiskFiles(FakeIo(latency=False)).knobs() | CostFiles(FakeIo(1)).knobs()
    assert {n for n, s in offered.items() if not s.ok} == {MODEL, QOS}  # nobody has a cgroup to show the others
    io = FakeIo(latency=False, cost=False)
    io.make("j10ce")
    assert {n for n, s in DiskFiles(io).knobs().items() if not s.ok} == {LATENCY, WEIGHT}


def test_what_is_off_is_not_switched_off_again(bench: Bench) -> None:
    cost = CostFiles(bench.io)
    assert cost.write(COST._replace(knob=QOS), "", Handle("8:0")) == Applied("")
    assert bench.io.read("", QOS) == ""
    assert isinstance(cost.write(COST, 1.0, Handle("8:0")), Refused)


def test_the_disks_of_this_machine_are_targets_with_an_identity() -> None:
    estate = DiskEstate()
    for target in estate.targets():
        at = estate.place(target)
        assert at is not None
        assert estate.identity(at) is not None
    assert estate.targets() is estate.targets()
    assert estate.place(disk("../../etc")) is None
    assert DiskEstate("/nowhere").targets() == ()


@given(st.text(alphabet="0189: \n=maxrbpstg\t-", max_size=120))
def test_any_file_of_lines_is_read(text: str) -> None:
    for number, rest in by_disk(text).items():
        assert parse_number(number)
        assert all(key and value for key, value in pairs(rest).items())
        assert limit(rest) >= 0
        for knob in (MODEL, QOS):
            assert canonical(knob, canonical(knob, rest)) == canonical(knob, rest)
