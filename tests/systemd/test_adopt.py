"""Services that were there before us: they get values, keep them over a restart, and are given back to the letter."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.errors import NotFound
from j10ce.kernel.systemd.dbus import CallFailed, Connection, watch_reloads
from j10ce.kernel.systemd.units import Units
from j10ce.model.knob import Setting, Value, workload
from j10ce.model.plan import Applied
from tests.systemd.units import Systemd, cgroup_files, drop_ins, shown, systemctl

UNIT = "adopted.service"
FILES = ("cpu.weight", "cpu.max", "cpuset.cpus", "memory.min", "memory.low", "memory.high", "memory.max", "cpu.idle")
MIB = 1 << 20
WANTED: dict[str, Value] = {
    "cpu.weight": 9216.0,
    "cpu.max": 70_000.0,
    "cpuset.cpus": frozenset({1}),
    "memory.min": float(4 * MIB),
    "memory.low": float(8 * MIB),
    "memory.high": float(900 * MIB),
    "memory.max": float(1000 * MIB),
}


@pytest.fixture
def service() -> Iterator[str]:
    file = Path("/run/systemd/system", UNIT)
    file.write_text("[Service]\nExecStart=/bin/sleep 600\nCPUWeight=500\nMemoryHigh=800M\n")
    systemctl("daemon-reload")
    systemctl("start", UNIT)
    systemctl("set-property", "--runtime", UNIT, "TasksMax=77", "MemoryMax=1200M")
    systemctl("daemon-reload")
    yield UNIT
    systemctl("stop", UNIT)
    file.unlink()
    systemctl("revert", UNIT)


class Adopted:
    def __init__(self, systemd: Systemd, unit: str) -> None:
        self.systemd = systemd
        self.at = systemd.units.locate(unit)
        self.target = workload("default", "adopted")
        self.saved: dict[Setting, str] = {}

    def write(self, values: dict[str, Value]) -> None:
        settings = {Setting(self.target, k): v for k, v in values.items()}
        for s in settings:
            text = self.systemd.backend.save(s, self.at)
            assert text is not None
            self.saved.setdefault(s, text)
        answers = self.systemd.backend.write_many(list(settings.items()), self.at)
        assert answers == [Applied(v) for v in values.values()]

    def give_back(self) -> None:
        for s, text in reversed(self.saved.items()):
            self.systemd.backend.restore(s, text, self.at)
        self.systemd.backend.settle()


def test_a_service_gets_values_and_gives_them_back(systemd: Systemd, service: str) -> None:
    before = shown(service), drop_ins(service), cgroup_files(f"system.slice/{service}", *FILES)
    adopted = Adopted(systemd, service)
    adopted.write(WANTED)
    assert cgroup_files(adopted.at.path, *FILES) == {
        "cpu.weight": "900",
        "cpu.max": "70000 100000",
        "cpuset.cpus": "1",
        "memory.min": str(4 * MIB),
        "memory.low": str(8 * MIB),
        "memory.high": str(900 * MIB),
        "memory.max": str(1000 * MIB),
        "cpu.idle": "0",
    }
    adopted.give_back()
    assert shown(service) == before[0]
    assert drop_ins(service) == before[1]
    assert cgroup_files(adopted.at.path, *FILES) == before[2]


def test_a_reload_keeps_the_values_of_a_service(systemd: Systemd, service: str) -> None:
    adopted = Adopted(systemd, service)
    adopted.write(WANTED)
    held = cgroup_files(adopted.at.path, *FILES)
    systemctl("daemon-reload")
    assert cgroup_files(adopted.at.path, *FILES) == held
    adopted.give_back()


def test_a_restarted_service_still_has_its_values_and_gives_them_back(systemd: Systemd, service: str) -> None:
    before = drop_ins(service)
    adopted = Adopted(systemd, service)
    identity = systemd.tree.identity(adopted.at, "cpu")
    adopted.write(WANTED)
    held = cgroup_files(adopted.at.path, *FILES)
    systemctl("restart", service)
    assert cgroup_files(adopted.at.path, *FILES) == held
    assert systemd.tree.identity(adopted.at, "cpu") == identity
    adopted.give_back()
    assert drop_ins(service) == before


def test_a_stopped_service_gives_back_what_its_next_start_would_have(systemd: Systemd, service: str) -> None:
    before = drop_ins(service)
    adopted = Adopted(systemd, service)
    adopted.write(WANTED)
    systemctl("stop", service)
    assert systemd.backend.read(Setting(adopted.target, "cpu.max"), adopted.at) == 70_000.0
    adopted.give_back()
    assert drop_ins(service) == before
    systemctl("start", service)
    assert cgroup_files(adopted.at.path, "cpu.weight", "memory.min") == {"cpu.weight": "500", "memory.min": "0"}


def test_an_idle_service_gets_its_own_weight_back(systemd: Systemd, service: str) -> None:
    adopted = Adopted(systemd, service)
    adopted.write({"cpu.idle": 1.0})
    assert cgroup_files(adopted.at.path, "cpu.idle") == {"cpu.idle": "1"}
    adopted.give_back()
    assert cgroup_files(adopted.at.path, "cpu.idle", "cpu.weight") == {"cpu.idle": "0", "cpu.weight": "500"}


def test_a_unit_that_does_not_run_cannot_be_adopted(systemd: Systemd) -> None:
    with pytest.raises(NotFound):
        systemd.units.locate("absent.service")


def test_a_lost_bus_is_found_again(systemd: Systemd) -> None:
    before = systemd.units.get("init.scope", "ControlGroup")
    systemctl("restart", "dbus.service")
    assert systemd.units.get("init.scope", "ControlGroup") == before == "/init.scope"


def test_no_bus_is_an_error_that_says_so() -> None:
    connection = Connection("unix:path=/run/no-such-bus")
    with pytest.raises(CallFailed, match="Disconnected"):
        Units(connection).ping()
    connection.close()


async def test_the_agent_hears_of_reloads() -> None:
    heard: asyncio.Queue[None] = asyncio.Queue()
    async with asyncio.TaskGroup() as tasks:
        watch = tasks.create_task(watch_reloads(lambda: heard.put_nowait(None)))
        await heard.get()
        assert heard.empty(), "once, when the watch begins"
        reload = await asyncio.create_subprocess_exec("systemctl", "daemon-reload", stdout=subprocess.DEVNULL)
        await heard.get()
        await reload.wait()
        watch.cancel()
