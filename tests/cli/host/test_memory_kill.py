"""A kill at the memory limit, as the counters of either cgroup version tell it."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from j10ce.cli.host.gate import KILLED
from j10ce.cli.host.memory_kill import limit_that_killed
from j10ce.cli.main import cli
from j10ce.host.mounts import Hierarchies, Mount

LIMIT = str(20 << 20)


def v1(*, killed: int, reached: int) -> dict[str, str]:
    message = f"oom_kill_disable 0\nunder_oom 0\noom_kill {killed}\n"
    return {"memory.oom_control": message, "memory.failcnt": f"{reached}\n", "memory.limit_in_bytes": f"{LIMIT}\n"}


def v2(*, killed: int, reached: int, limit: str = LIMIT) -> dict[str, str]:
    message = f"low 0\nhigh 0\nmax 9\noom {reached}\noom_kill {killed}\n"
    return {"memory.events": message, "memory.max": f"{limit}\n"}


@pytest.mark.parametrize(
    ("files", "says"),
    [
        pytest.param(v1(killed=1, reached=7), "20Mi", id="v1"),
        pytest.param(v1(killed=1, reached=0), "", id="v1, the machine had no memory"),
        pytest.param(v1(killed=0, reached=7), "", id="v1, killed by someone"),
        pytest.param(v2(killed=1, reached=1), "20Mi", id="v2"),
        pytest.param(v2(killed=1, reached=0), "", id="v2, a limit above it"),
        pytest.param(v2(killed=1, reached=1, limit="max"), "", id="v2, no limit"),
        pytest.param({}, "", id="the cgroup is gone"),
    ],
)
def test_a_kill_is_put_down_to_the_limit_that_was_reached(
    files: dict[str, str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    fake = SimpleNamespace(discover=lambda: SimpleNamespace(directory=lambda *_: str(tmp_path)))
    monkeypatch.setattr("j10ce.cli.host.memory_kill.Hierarchies", fake)
    assert limit_that_killed("j10ce/standard/default_web") == says


@pytest.mark.parametrize(
    "mounts",
    [
        pytest.param({}, id="nothing counts memory here"),
        pytest.param({"memory": Mount("/", 1, frozenset({"memory"}))}, id="the cgroup goes while it is read"),
    ],
)
def test_a_killed_command_keeps_its_code_and_leaves_where_the_counters_cannot_be_read(
    mounts: dict[str, Mount], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: Path) -> None:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))

    left: list[str] = []
    placed = {"namespace": "default", "name": "web", "cgroup": "web", "unmet": [], "notes": [], "armed": False}
    monkeypatch.setattr("j10ce.cli.host.workloads._ask", lambda *_: placed)
    monkeypatch.setattr("j10ce.cli.host.workloads._leave", lambda _, it: left.append(it["name"]))
    monkeypatch.setattr("j10ce.cli.host.memory_kill.Hierarchies.discover", lambda: Hierarchies(mounts))
    monkeypatch.setattr("j10ce.cli.host.memory_kill._counts", gone)
    result = CliRunner().invoke(cli, ["run", "--", "sh", "-c", "kill -KILL $$"])
    assert (result.exit_code, left) == (KILLED, ["web"])
