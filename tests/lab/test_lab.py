"""The parts of the lab that need no guest, and the rule on skips."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import conftest
from tests.lab.guest import Cgroup, scripts
from tests.lab.initrd import Entry, archive, load_order


def test_archive_pads_every_part_to_four_bytes() -> None:
    raw = archive([Entry("a", 0o100644, b"xyz")])
    assert raw.startswith(b"070701")
    assert len(raw) % 4 == 0
    assert raw.count(b"070701") == 2, "one header for the file, one for the trailer"
    assert b"a\0" in raw
    assert b"xyz\0" in raw


def test_modules_come_after_what_they_need(tmp_path: Path) -> None:
    (tmp_path / "modules.dep").write_text(
        "k/9p.ko: k/9pnet.ko k/fscache.ko\nk/9pnet.ko:\nk/fscache.ko: k/netfs.ko\nk/9pnet_virtio.ko: k/9pnet.ko\n"
    )
    names = [path.name for path in load_order(tmp_path)]
    assert names == ["9pnet.ko", "9pnet_virtio.ko", "fscache.ko", "9p.ko"]


@pytest.mark.parametrize("cgroup", [pytest.param(kind, id=kind.value) for kind in Cgroup])
def test_every_guest_ends_in_the_command(cgroup: Cgroup) -> None:
    files = scripts(cgroup, ["echo", "two words"], {"NAME": "it's"})
    assert "command.sh" in files["boot.sh"]
    assert files["payload.sh"] == "exec echo 'two words'\n"
    assert "export NAME='it'\"'\"'s'\n" in files["env.sh"]


@pytest.mark.parametrize(
    ("guest", "reason", "allowed"),
    [
        pytest.param("", "not today", False, id="a skip must name what is missing"),
        pytest.param("", "Unsupported: memory.low needs cgroup v2", True, id="a host may lack a kernel file"),
        pytest.param("v2", "Unsupported: memory.low needs cgroup v2", False, id="the guest has it"),
        pytest.param("v2", "Unsupported: io.latency is not built in", True, id="stock kernels lack it"),
        pytest.param("v2", "Unsupported: cgroup v1", True, id="the v2 guest is no v1 host"),
    ],
)
def test_rule_on_skips(monkeypatch: pytest.MonkeyPatch, guest: str, reason: str, allowed: bool) -> None:
    monkeypatch.setattr(conftest, "LAB", guest)
    assert (conftest.objection(reason) is None) == allowed
