from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.testing.fake_systemd import FakeSystemd
from tests.kernel.systemd.systemd_host import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(FakeSystemd(tmp_path))
