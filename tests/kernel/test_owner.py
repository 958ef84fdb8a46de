"""Who owns the tree: systemd, a user's systemd, or nobody; and a bus that does not answer."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.errors import Unsupported
from j10ce.host.mounts import Hierarchies, Mount
from j10ce.kernel.owner import Endpoint, choose, manager, reach
from j10ce.kernel.systemd.dbus import SYSTEM_BUS, Bus, CallFailed, Connection, Patience
from j10ce.kernel.systemd.units import Units
from j10ce.testing.fake_systemd import FakeSystemd


@pytest.fixture
def systemd(tmp_path: Path) -> FakeSystemd:
    return FakeSystemd(tmp_path)


def test_root_has_the_systems_manager(systemd: FakeSystemd, tmp_path: Path) -> None:
    owner = manager(systemd.hierarchies, 0, {}, str(tmp_path))
    assert owner == Endpoint(SYSTEM_BUS, "/run/systemd", user=False)


def test_a_user_has_their_own(systemd: FakeSystemd, tmp_path: Path) -> None:
    (tmp_path / "systemd").mkdir()
    (tmp_path / "systemd/private").touch()
    owner = manager(systemd.hierarchies, 7, {"XDG_RUNTIME_DIR": str(tmp_path)}, str(tmp_path))
    assert owner == Endpoint(f"unix:path={tmp_path}/bus", f"{tmp_path}/systemd", user=True)


def test_what_is_missing_is_named(systemd: FakeSystemd, tmp_path: Path) -> None:
    v1 = Hierarchies({"cpu": Mount("/cpu", 1, frozenset({"cpu"}))})
    rows = [
        (systemd.hierarchies, 0, "absent", "systemd as the init"),
        (v1, 0, "", "cgroup v2 alone; this machine is v1"),
        (systemd.hierarchies, 7, "", "root, or the systemd manager of user 7"),
    ]
    for hierarchies, uid, booted, needs in rows:
        with pytest.raises(Unsupported, match=needs):
            manager(hierarchies, uid, {"XDG_RUNTIME_DIR": "/absent"}, str(tmp_path / booted))


def test_a_manager_that_answers_is_taken(systemd: FakeSystemd) -> None:
    units = reach(Endpoint("", str(systemd.run), user=False), systemd.hierarchies, lambda _: systemd)
    assert units.version == 252


def test_a_manager_that_does_not_answer_is_left_alone(systemd: FakeSystemd, tmp_path: Path) -> None:
    def connect(_: str) -> Bus:
        return Connection(f"unix:path={tmp_path}/absent")

    with pytest.raises(Unsupported, match="an answer from systemd over nowhere; systemd said Disconnected"):
        reach(Endpoint("nowhere", "/run", user=False), systemd.hierarchies, connect)


def test_plain_directories_without_systemd(systemd: FakeSystemd) -> None:
    owner = choose(systemd.hierarchies, "plain")
    assert (owner.tree.name, owner.units, owner.bus) == ("plain", None, "")
    owner.close()


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[str]:
    """A bus that takes connections and never says a word."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "bus"))
        listener.listen()
        yield f"unix:path={tmp_path}/bus"


def test_a_silent_bus_is_given_up(silent: str) -> None:
    connection = Connection(silent, timeout_s=0.05)
    with pytest.raises(CallFailed, match=r"no answer to Ping within 0\.05 s"):
        Units(connection).ping()
    connection.close()


def test_a_silent_bus_is_waited_for_once_and_not_for_every_property(silent: str) -> None:
    connection = Connection(silent, timeout_s=0.05)
    units = Units(connection)
    with pytest.raises(CallFailed, match="no answer"):
        units.ping()
    for _ in range(6):
        with pytest.raises(CallFailed, match="is not asked: the calls before it took too long"):
            units.ping()
    connection.close()


def test_patience_is_used_up_by_slow_calls_alone_and_comes_back() -> None:
    now = 0.0
    patience = Patience(12.0, lambda: now)
    for _ in range(1000):
        patience.spend(0.1)  # quick ones, as many as there are units
    assert patience.left() == 12.0
    waited = 0.0
    while (left := patience.left()) >= 0.05:  # every call takes as long as it may, up to eight seconds
        took = min(8.0, left)
        now += took
        waited += took
        patience.spend(took)
        assert waited < 20.0, "well below the thirty seconds of the watchdog"
    now += 36.0
    assert patience.left() == 12.0


async def test_an_agent_that_starts_asks_from_inside_its_loop(silent: str) -> None:
    connection = Connection(silent, timeout_s=0.05)
    with pytest.raises(CallFailed, match="no answer"):
        Units(connection).ping()
    connection.close()


def test_a_bus_that_hangs_up_is_an_error_not_a_wait(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "bus"))
        listener.listen()
        connection = Connection(f"unix:path={tmp_path}/bus")
        listener.shutdown(socket.SHUT_RDWR)
    with pytest.raises(CallFailed, match="Disconnected"):
        Units(connection).ping()
    connection.close()


def test_dbus_costs_nothing_where_it_is_not_used(python: str, clone: Path) -> None:
    code = "import sys, j10ce.kernel.owner; assert 'dbus_fast' not in sys.modules"
    subprocess.run([python, "-c", code], check=True, env={"PYTHONPATH": str(clone / "src")})
