"""What scenarios are played on, on this machine; and that nothing of it stays."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from j10ce.bench.crowd import redis
from j10ce.bench.crowd.antagonist import BULK_PORT
from j10ce.bench.crowd.requests import BLOCK, KINDS
from j10ce.bench.scratch import Scratch
from j10ce.bench.stages.box import box
from j10ce.bench.stages.disk import CONTROL, attached, disk
from j10ce.bench.stages.link import ON, PEER, RATE, linked
from j10ce.bench.stages.redis import driven
from j10ce.bench.stages.wires import HERE
from j10ce.errors import Unsupported
from j10ce.host import child
from j10ce.host.mounts import Hierarchies

host = pytest.mark.host
LOOK_S = 1.0
NO_ONE_CLOSES = "ignore::pytest.PytestUnraisableExceptionWarning"  # what a service has open until it ends
HOLDS = """
import signal
from j10ce.bench.stages.disk import attached
with attached(1 << 20) as one:
    print(one.name, flush=True)
    signal.pause()
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "1")


def files(name: str) -> str:
    """Which file a loop device is over; empty where there is none."""
    path = Path(f"/sys/block/{name}/loop/backing_file")
    return path.read_text() if path.exists() else ""


@host
@pytest.mark.filterwarnings(NO_ONE_CLOSES)
def test_a_link_carries_what_its_switch_does_and_is_gone_afterwards(scratch: Scratch) -> None:
    before = os.readlink(HERE), {name for _, name in socket.if_nameindex()}
    with linked(scratch) as stage:
        KINDS["rpc"](stage.service, 0.0)()
        assert stage.used_s is not None
        begun, used = time.monotonic(), stage.used_s()
        with socket.create_connection((PEER, BULK_PORT)) as bulk:
            while time.monotonic() < begun + LOOK_S:
                bulk.sendall(bytes(1 << 20))
        sent = stage.used_s() - used
        assert 0 < sent * RATE <= 1.1 * RATE * (time.monotonic() - begun)
        assert os.readlink(HERE) != before[0]
    assert (os.readlink(HERE), {name for _, name in socket.if_nameindex()}) == before
    assert ON not in before[1]


@host
@pytest.mark.skipif(not os.path.exists(CONTROL), reason=f"Unsupported: loop devices need {CONTROL}")
def test_a_disk_is_read_written_and_counted_and_is_gone_afterwards(scratch: Scratch) -> None:
    with disk(scratch) as stage:
        name = os.path.basename(stage.service.partition(":")[0])
        assert stage.used_s is not None
        before = stage.used_s()
        with open(stage.service.partition(":")[0], "rb", buffering=0) as device:
            assert len(device.read(BLOCK)) == BLOCK
        assert stage.used_s() > before
        assert files(name)
    assert not files(name)


@host
@pytest.mark.skipif(not os.path.exists(CONTROL), reason=f"Unsupported: loop devices need {CONTROL}")
def test_a_disk_goes_with_whoever_made_it_however_that_ends() -> None:
    environ = child.environ(os.environ) | {"PYTHONPATH": ":".join(child.search_path())}
    holder = subprocess.Popen([sys.executable, "-P", "-c", HOLDS], stdout=subprocess.PIPE, env=environ, text=True)
    with holder:
        assert holder.stdout is not None
        name = holder.stdout.readline().strip()
        assert files(name)
        holder.send_signal(signal.SIGKILL)
    assert not files(name)


@host
@pytest.mark.skipif(not os.path.exists(CONTROL), reason=f"Unsupported: loop devices need {CONTROL}")
def test_what_memory_has_of_a_disk_is_forgotten() -> None:
    with attached(1 << 20) as one, open(one.path, "rb", buffering=0) as device:
        for again in (False, True):
            before = one.read()
            os.pread(device.fileno(), BLOCK, 0)
            if again:
                assert one.read() == before
                one.forget()
                os.pread(device.fileno(), BLOCK, 0)
            assert one.read() > before


@host
def test_two_have_a_disk_each() -> None:
    with attached(1 << 20) as one, attached(1 << 20) as other:
        assert one.path != other.path


@pytest.mark.skipif(Hierarchies.discover().version("memory") == 2, reason="Unsupported: cgroup v1 is not used here")
def test_without_floors_of_memory_there_is_no_box(scratch: Scratch) -> None:
    with pytest.raises(Unsupported, match="it needs cgroup v2"), box(scratch):
        pass


def test_without_a_redis_it_says_how_to_get_one(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis.child, "PATH", "/nonexistent")
    with pytest.raises(Unsupported, match="apt-get install redis-server"), driven(scratch):
        pass
