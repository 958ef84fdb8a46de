"""Sensors and back ends of other distributions: found by entry point, and contained where they raise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import pytest

from j10ce.agent.plugins.inline import PluginBackend, backends, sensors
from j10ce.agent.plugins.installed import BACKENDS, CONTROLLERS, SENSORS, installed
from j10ce.errors import QosError
from j10ce.kernel.routes import Routes
from j10ce.model.knob import NODE, Setting, Support, TargetId, Value
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle, Workload
from j10ce.observe.sensor import Sample
from j10ce.testing.fake_kernel import FakeKernel

HERE = "tests.agent.plugins.test_inline"
HIGH = Setting(TargetId("workload/default/web"), "memory.high")
AT = Handle("web")


class Warm:
    name = "warm"

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterable[Sample]:
        return [Sample(NODE, "node.temperature", 40.0)]


class Angry:
    """A back end that raises whatever is asked of it, but for its knobs."""

    def knobs(self) -> Mapping[str, Support]:
        return {"memory.high": Support(True, via="angry"), "warp.drive": Support(True, via="angry")}

    def quantise(self, s: Setting, v: Value, /) -> Value:
        raise ZeroDivisionError("no")

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        raise ZeroDivisionError("no")

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        raise ZeroDivisionError("no")

    def save(self, s: Setting, at: Handle, /) -> str | None:
        raise ZeroDivisionError("no")

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        raise ZeroDivisionError("no")


class Speechless(Angry):
    def knobs(self) -> Mapping[str, Support]:
        raise ZeroDivisionError("no knobs")


def site(folder: Path, *lines: str) -> list[str]:
    (folder / "mine-1.dist-info").mkdir()
    (folder / "mine-1.dist-info/entry_points.txt").write_text("\n".join(lines))
    return [str(folder)]


def test_each_seam_has_its_entry_points(tmp_path: Path) -> None:
    search = site(
        tmp_path, f"[{CONTROLLERS}]", "a = m:A", f"[{SENSORS}]", "b=m:B", f"[{BACKENDS}]", "c = m:C", "d = m:D"
    )
    assert installed(CONTROLLERS, search) == {"a": "m:A"}
    assert installed(SENSORS, search) == {"b": "m:B"}
    assert installed(BACKENDS, search) == {"c": "m:C", "d": "m:D"}


def test_a_sensor_measures_and_one_that_is_disabled_is_not_loaded() -> None:
    points = {"warm": f"{HERE}:Warm", "lost": "no.such.module:Lost"}
    (warm,) = sensors(["lost"], points)
    assert list(warm.sample(1.0, [])) == [Sample(NODE, "node.temperature", 40.0)]


def test_a_sensor_that_cannot_be_loaded_says_so_whenever_it_is_asked() -> None:
    (lost,) = sensors((), {"lost": "no.such.module:Lost"})
    for now in (1.0, 2.0):
        with pytest.raises(ModuleNotFoundError, match="No module named"):
            lost.sample(now, [])


def test_what_a_back_end_raises_is_a_refusal_with_its_error() -> None:
    (angry,) = backends((), {"angry": f"{HERE}:Angry"})
    assert angry.knobs() == {"memory.high": Support(True, via="angry")}, "no knob that the table does not know"
    refused = Refused("back end angry: ZeroDivisionError: no")
    assert angry.write(HIGH, 1.0, AT) == refused
    assert angry.restore(HIGH, "1", AT) == refused
    assert angry.quantise(HIGH, 5.0) == 5.0
    for ask in (angry.read, angry.save):
        with pytest.raises(QosError, match="back end angry: ZeroDivisionError: no"):
            ask(HIGH, AT)


@pytest.mark.parametrize(
    ("where", "why"),
    [(f"{HERE}:Speechless", "no knobs"), ("no.such.module:X", "No module named"), (f"{HERE}:Nobody", "Nobody")],
)
def test_a_back_end_that_cannot_say_what_it_has_is_missing_with_its_error(where: str, why: str) -> None:
    mute = PluginBackend("mute", where)
    (name, support), *rest = mute.knobs().items()
    assert (name, support.ok, rest) == ("back end mute", False, [])
    assert why in support.needs


def test_what_is_built_in_comes_first() -> None:
    fake = FakeKernel("v2")
    routes = Routes(fake, [fake, PluginBackend("angry", f"{HERE}:Angry")])
    assert routes.backend(HIGH) is fake


@pytest.mark.parametrize("template", ["plugin", "sensor", "backend", "scheduler-plugin"])
def test_a_template_passes_its_own_tests(template: str, clone: Path) -> None:
    folder = clone / f"examples/{template}-template"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", "."]
    environ = {**os.environ, "PYTHONPATH": f"src{os.pathsep}{clone / 'src'}", "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run([*command, "tests"], cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
