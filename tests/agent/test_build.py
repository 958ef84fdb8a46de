"""What is wired together when an agent starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.agent.build import _observer
from j10ce.agent.config import AgentConfig
from j10ce.host.disks import discover
from j10ce.host.files import Files
from j10ce.host.handles import Layout
from j10ce.host.mounts import Hierarchies
from j10ce.observe.sensors.disks import DiskSensor
from j10ce.policy.strategy import merged
from j10ce.testing import build


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sockets to the kernel end with an agent's process; here nobody would close them."""
    monkeypatch.setattr("j10ce.agent.build.links.table", lambda **_: None)
    monkeypatch.setattr("j10ce.observe.sensors.disk_watch.open_events", lambda: None)


@pytest.mark.usefixtures("deaf")
def test_a_disk_is_measured_where_an_operator_says_that_it_is_managed_and_only_there(tmp_path: Path) -> None:
    managed = [d.name for d in discover().values() if d.managed]
    if not managed:
        pytest.skip("Unsupported: nothing here is on a disk")
    hierarchies, files = Hierarchies.discover(), Files()
    layout = Layout(hierarchies, files, "j10ce")
    observer = _observer(build.node(), hierarchies, files, layout, AgentConfig(state_dir=str(tmp_path)))
    (sensor,) = [s for s in observer._sensors if isinstance(s, DiskSensor)]
    observer.snapshot(1.0, 1.0, {}, {}, {}, {})
    for said, seen in (({}, True), ({name: {"managed": False} for name in managed}, False)):
        observer.heed(merged([build.strategy("disks", {"io": {"disks": said}})]))
        list(sensor.sample(1.0, []))
        assert bool(sensor.targets) == seen
