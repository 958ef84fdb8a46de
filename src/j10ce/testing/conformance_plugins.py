"""What every sensor and every back end of a plugin must do. Subclass, and give the fixtures.

class TestMine(SensorConformance):
    @pytest.fixture
    def sensor(self) -> Sensor: ...

class TestMine(PluginBackendConformance):
    @pytest.fixture
    def trial(self) -> Trial: ...
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from j10ce.kernel.backend import Backend
from j10ce.model.knob import KNOBS, NODE, Setting, TargetId, Value, part
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle, Workload
from j10ce.observe.sensor import Sensor
from j10ce.testing.build import handle, workload


class SensorConformance:
    """Give `sensor`; and `workloads`, if it measures some."""

    @pytest.fixture
    def workloads(self) -> list[Workload]:
        return []

    def test_it_has_a_name(self, sensor: Sensor) -> None:
        assert sensor.name

    def test_samples_are_numbers_of_what_it_was_asked_about(self, sensor: Sensor, workloads: list[Workload]) -> None:
        parts = {part(w.namespace, w.name, p.name) for w in workloads for p in w.parts}
        known: set[TargetId] = {NODE, *(w.target for w in workloads), *parts}
        for now in (1.0, 2.0, 3.0):
            for target, metric, value in sensor.sample(now, workloads):
                assert target in known
                assert metric
                assert math.isfinite(value)

    def test_a_workload_that_vanished_yields_nothing(self, sensor: Sensor) -> None:
        gone = workload("gone", handle=handle("no/such/cgroup"))
        samples = [s for now in (1.0, 2.0) for s in sensor.sample(now, [gone])]
        assert not [s for s in samples if s.target == gone.target]

    def test_a_second_look_at_the_same_instant_breaks_nothing(self, sensor: Sensor, workloads: list[Workload]) -> None:
        for now in (5.0, 5.0, 4.0):
            list(sensor.sample(now, workloads))


@dataclass(frozen=True)
class Trial:
    """A back end, a place that it can write to, one that is not there, and values to try."""

    backend: Backend
    at: Handle
    gone: Handle
    values: Mapping[str, tuple[Value, ...]]  # knob to some that the kernel takes, two at least

    @property
    def settings(self) -> list[Setting]:
        return [Setting(TargetId("workload/default/tried"), knob) for knob in self.values]


class PluginBackendConformance:
    """Give `trial`. What is written can be read, saved and given back to the letter; what is gone is no error."""

    def test_it_offers_knobs_of_the_table_and_all_that_are_tried(self, trial: Trial) -> None:
        offered = trial.backend.knobs()
        assert offered.keys() <= KNOBS.keys()
        assert all(support.ok or support.needs for support in offered.values()), "what is missing, and what it needs"
        assert all(offered[knob].ok and offered[knob].via for knob in trial.values)

    def test_rounding_twice_is_rounding_once(self, trial: Trial) -> None:
        for s in trial.settings:
            for value in trial.values[s.knob]:
                once = trial.backend.quantise(s, value)
                assert trial.backend.quantise(s, once) == once

    def test_what_was_written_is_read_as_it_was_foretold(self, trial: Trial) -> None:
        for s in trial.settings:
            for value in (*trial.values[s.knob], trial.values[s.knob][0]):
                assert isinstance(trial.backend.write(s, value, trial.at), Applied)
                assert trial.backend.read(s, trial.at) == trial.backend.quantise(s, value)

    def test_what_was_saved_comes_back_to_the_letter(self, trial: Trial) -> None:
        for s in trial.settings:
            first, second, *_ = trial.values[s.knob]
            trial.backend.write(s, first, trial.at)
            saved = trial.backend.save(s, trial.at)
            assert saved is not None
            trial.backend.write(s, second, trial.at)
            assert isinstance(trial.backend.restore(s, saved, trial.at), Applied)
            assert trial.backend.save(s, trial.at) == saved

    def test_what_is_gone_is_no_error(self, trial: Trial) -> None:
        for s in trial.settings:
            assert trial.backend.read(s, trial.gone) is None
            assert trial.backend.save(s, trial.gone) is None
            written = trial.backend.write(s, trial.values[s.knob][0], trial.gone)
            assert isinstance(written, Gone)
            assert not isinstance(written, Refused)
