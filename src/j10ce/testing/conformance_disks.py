"""What the controller of disks must do, be it fake or real. Subclass, and give the fixture.

class TestMine(DiskConformance):
    @pytest.fixture
    def bench(self) -> DiskBench: ...
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from j10ce.kernel.disk.cost import MODEL, QOS, CostFiles
from j10ce.kernel.disk.files import LATENCY, WEIGHT, DiskFiles
from j10ce.model.knob import FILES, KNOBS, Setting, disk, group
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

CAPS = ("io.max.rbps", "io.max.wbps", "io.max.riops", "io.max.wiops")
WRITES = [
    pytest.param("io.max.rbps", 1.0, id="a byte a second"),
    pytest.param("io.max.rbps", float(50 << 20), id="50 MiB/s read"),
    pytest.param("io.max.wbps", 1e6 + 0.5, id="a rate that is no whole byte"),
    pytest.param("io.max.riops", 200.0, id="200 reads a second"),
    pytest.param("io.max.wiops", 1e12, id="more writes than the kernel counts"),
    pytest.param("io.max.wbps", math.inf, id="no limit"),
    pytest.param(LATENCY, 5000.0, id="5 ms"),
    pytest.param(LATENCY, 0.0, id="any time"),
]
MODEL_TEXT = (
    "ctrl=user model=linear rbps=100000000 rseqiops=20000 rrandiops=5000 wbps=80000000 wseqiops=15000 wrandiops=4000"
)
QOS_TEXT = "enable=1 ctrl=user rpct=95.00 rlat=5000 wpct=95.00 wlat=5000 min=50.00 max=150.00"


@dataclass(frozen=True)
class DiskBench:
    """A cgroup to try things on, and a disk that nobody else uses."""

    files: DiskFiles
    cost: CostFiles
    path: str
    number: str
    enforcing: bool = True  # False: files without a kernel behind them

    @property
    def at(self) -> Handle:
        return Handle(self.path)

    def setting(self, knob: str) -> Setting:
        """One that this machine lacks skips the test."""
        support = {**self.files.knobs(), **self.cost.knobs()}[knob]
        if not support.ok:
            pytest.skip(f"Unsupported: {knob} needs {support.needs}")
        if KNOBS[knob].on == "disk":
            return Setting(disk(self.number), knob)
        return Setting(group(self.path), knob, self.number if KNOBS[knob].several else "")


class DiskConformance:
    def test_every_knob_is_offered_or_says_what_it_needs(self, bench: DiskBench) -> None:
        offered = {**bench.files.knobs(), **bench.cost.knobs()}
        assert offered.keys() == {k.name for k in KNOBS.values() if k.on in (FILES, "disk")}
        assert all(s.via if s.ok else s.needs for s in offered.values())

    @pytest.mark.parametrize("knob", [k.name for k in KNOBS.values() if k.on == FILES])
    def test_a_fresh_cgroup_holds_the_default_of_every_disk(self, bench: DiskBench, knob: str) -> None:
        assert bench.files.read(bench.setting(knob), bench.at) == KNOBS[knob].default
        assert bench.files.instances(knob, bench.at) == ()

    @pytest.mark.parametrize(("knob", "value"), WRITES)
    def test_what_is_written_is_held_as_quantise_says(self, bench: DiskBench, knob: str, value: float) -> None:
        if not bench.enforcing and math.isinf(bench.files.quantise(bench.setting(knob), value)):  # type: ignore[arg-type]
            pytest.skip("Unsupported: a line that goes needs a kernel")
        setting = bench.setting(knob)
        expected = bench.files.quantise(setting, value)
        held = bench.files.write(setting, value, bench.at)
        assert held == Applied(expected), (held, expected)
        assert bench.files.read(setting, bench.at) == expected
        assert bench.files.quantise(setting, expected) == expected
        held = bench.files.write(setting, value, bench.at)
        assert held == Applied(expected), (held, expected)

    @pytest.mark.parametrize("knob", CAPS)
    def test_a_disk_that_is_limited_is_listed_and_one_that_is_not_is_not(self, bench: DiskBench, knob: str) -> None:
        setting = bench.setting(knob)
        bench.files.write(setting, 1e6, bench.at)
        assert bench.files.instances(knob, bench.at) == (bench.number,)
        if bench.enforcing:
            bench.files.write(setting, math.inf, bench.at)
            assert bench.files.instances(knob, bench.at) == ()

    def test_caps_of_one_disk_leave_each_other_alone(self, bench: DiskBench) -> None:
        if not bench.enforcing:
            pytest.skip("Unsupported: a line of several values needs a kernel")
        settings = {bench.setting(knob): 1000.0 * n for n, knob in enumerate(CAPS, 1)}
        for setting, value in settings.items():
            bench.files.write(setting, value, bench.at)
        assert {s: bench.files.read(s, bench.at) for s in settings} == settings

    @pytest.mark.parametrize("knob", [*CAPS, LATENCY, WEIGHT])
    def test_restore_gives_back_what_save_saw(self, bench: DiskBench, knob: str) -> None:
        if not bench.enforcing:
            pytest.skip("Unsupported: a line that goes needs a kernel")
        setting = bench.setting(knob)
        saved = bench.files.save(setting, bench.at)
        assert saved is not None
        bench.files.write(setting, 500.0, bench.at)
        assert isinstance(bench.files.restore(setting, saved, bench.at), Applied)
        assert bench.files.save(setting, bench.at) == saved
        assert bench.files.read(setting, bench.at) == KNOBS[knob].default

    @pytest.mark.parametrize("weight", [1.0, 37.0, 100.0, 1234.0, 10_000.0, 0.0, 1e9])
    def test_a_weight_is_held_as_the_scheduler_of_the_disk_counts(self, bench: DiskBench, weight: float) -> None:
        setting = bench.setting(WEIGHT)
        expected = bench.files.quantise(setting, weight)
        assert bench.files.quantise(setting, expected) == expected
        if bench.enforcing:
            assert bench.files.write(setting, weight, bench.at) == Applied(expected)

    @pytest.mark.parametrize("number", ["4095:1000", "sda", "8:0 rbps=1", ""])
    def test_a_disk_that_is_not_there_is_refused_by_its_number(self, bench: DiskBench, number: str) -> None:
        if not bench.enforcing:
            pytest.skip("Unsupported: refusals need a kernel")
        result = bench.files.write(bench.setting("io.max.rbps")._replace(instance=number), 1e6, bench.at)
        assert isinstance(result, Refused)
        assert number in result.reason

    def test_a_text_is_no_cap(self, bench: DiskBench) -> None:
        assert isinstance(bench.files.write(bench.setting("io.max.rbps"), "much", bench.at), Refused)

    @pytest.mark.parametrize("knob", ["io.max.rbps", LATENCY, WEIGHT])
    def test_a_vanished_cgroup_is_an_ordinary_answer(self, bench: DiskBench, knob: str) -> None:
        setting, nowhere = bench.setting(knob), Handle(f"{bench.path}/nowhere")
        saved = bench.files.save(setting, bench.at)
        assert saved is not None
        assert bench.files.read(setting, nowhere) is bench.files.save(setting, nowhere) is None
        assert bench.files.instances(knob, nowhere) == ()
        assert bench.files.write(setting, 500.0, nowhere) == bench.files.restore(setting, saved, nowhere) == Gone()

    @pytest.mark.parametrize(("knob", "text"), [(MODEL, MODEL_TEXT), (QOS, QOS_TEXT)])
    def test_a_disk_takes_a_model_and_gives_it_back(self, bench: DiskBench, knob: str, text: str) -> None:
        if not bench.enforcing:
            pytest.skip("Unsupported: a line of several values needs a kernel")
        setting, at = bench.setting(knob), Handle(bench.number)
        before = bench.cost.save(setting, at)
        assert before == bench.cost.read(setting, at) == ""
        shuffled = " ".join(sorted(text.replace(".00", "").split()))
        assert bench.cost.quantise(setting, shuffled) == text
        assert bench.cost.write(setting, shuffled, at) == Applied(text)
        assert bench.cost.read(setting, at) == text
        assert bench.cost.restore(setting, before, at) == Applied("")

    def test_a_model_of_a_disk_that_is_not_there_is_refused(self, bench: DiskBench) -> None:
        if not bench.enforcing:
            pytest.skip("Unsupported: refusals need a kernel")
        assert isinstance(bench.cost.write(bench.setting(MODEL), MODEL_TEXT, Handle("4095:1000")), Refused)
