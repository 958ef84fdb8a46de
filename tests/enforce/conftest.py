from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from j10ce.host.mounts import Hierarchies
from tests.enforce.disk.loop import load_loop
from tests.enforce.workbench import MIB, STREAM, WORKING_SET, Workbench

numbers = count()


@pytest.fixture
def work() -> Iterator[Workbench]:
    """Real cgroups of this test's own."""
    work = Workbench(Hierarchies.discover(), f"j10cetest-{os.getpid()}-{next(numbers)}")
    yield work
    work.clear()


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system whose pages can be reclaimed: tmpfs, where tests live, has none."""
    image = tmp_path_factory.mktemp("image") / "disk"
    with image.open("wb") as f:
        f.truncate(WORKING_SET + STREAM + 64 * MIB)
    subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", image], check=True)
    mount = tmp_path_factory.mktemp("disk")
    load_loop()
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    for name, size in (("working-set", WORKING_SET), ("stream", STREAM)):
        with (mount / name).open("wb") as f:
            for _ in range(size // MIB):
                f.write(bytes(MIB))
            os.fsync(f.fileno())
    yield mount
    subprocess.run(["umount", "--lazy", mount], check=True)
