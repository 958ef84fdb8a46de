"""What is remembered comes back the same; what is damaged is set aside and reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.agent.cache import Cache, KeptWorkload, LocalHolds, Orders
from j10ce.agent.ring.objects import to_object
from j10ce.model.kinds import Tier
from j10ce.model.quantity import Bytes, Millicores
from j10ce.model.resource import Resources
from j10ce.model.workload import Handle
from j10ce.policy.document.document import FORMAT, NodeDocument
from j10ce.policy.entitlement.ledger import Line
from j10ce.policy.profiles import builtin
from j10ce.testing import build

PROMISED = Line("workload/default/web", Resources(Millicores(500), Bytes(1 << 30)), Tier.SENSITIVE, "Workload", 1)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "run", tmp_path / "state")


def placed(name: str) -> KeptWorkload:
    web = build.workload(name, profile="ls", min_cpu="500m", memory_limit="1Gi")
    handle = Handle(path=f"j10ce/sensitive/default_{name}")
    return KeptWorkload(workload=to_object(web), handle=handle, inode=7, boot_id="b", uid=1000, since=build.WALL)


def test_everything_comes_back_as_it_was(cache: Cache) -> None:
    document = NodeDocument(node="n", format=FORMAT, profiles=builtin(), policies=(build.reservation(cpu="1"),))
    holds = LocalHolds(items=(build.hold("workload/default/web", "cpu.max"),))
    cache.keep_document(document)
    cache.keep_holds(holds)
    cache.keep_orders(Orders(disarmed=True))
    cache.keep_workload(placed("web"))
    cache.keep_promises([PROMISED])
    assert cache.promises() == (PROMISED,)
    assert cache.document() == document
    assert cache.holds() == holds
    assert cache.orders().disarmed
    assert cache.workloads() == [placed("web")]


@pytest.mark.parametrize(
    ("format_", "kept"), [(FORMAT, True), (FORMAT - 1, True), (FORMAT + 1, False)], ids=["present", "previous", "later"]
)
def test_a_document_is_kept_in_the_formats_that_the_control_plane_speaks(
    cache: Cache, format_: int, kept: bool
) -> None:
    document = NodeDocument(node="n", profiles=builtin(), format=format_)
    cache.keep_document(document)
    assert cache.document() == (document if kept else None)


def test_files_are_for_the_agent_alone(cache: Cache, tmp_path: Path) -> None:
    cache.keep_document(NodeDocument(node="n", format=FORMAT))
    assert (tmp_path / "state/document.json").stat().st_mode & 0o777 == 0o600


def test_an_absent_cache_is_empty_without_a_warning(cache: Cache) -> None:
    assert cache.document() is None
    assert cache.workloads() == []
    assert not cache.warnings


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="truncated"),
        pytest.param(b"\xff\xfe\x00", id="binary"),
        pytest.param(b"[]", id="of another shape"),
        pytest.param(b'{"node":"n","surprise":1}', id="with an unknown field"),
        pytest.param(b'{"node":"n","format":99}', id="of a later format"),
    ],
)
def test_a_damaged_file_is_kept_aside_and_reported(cache: Cache, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/document.json").write_bytes(content)
    assert cache.document() is None
    assert (tmp_path / "state/document.corrupt").read_bytes() == content
    assert "document.corrupt" in cache.warnings[0]


def test_one_damaged_workload_does_not_take_the_others_along(cache: Cache, tmp_path: Path) -> None:
    cache.keep_workload(placed("web"))
    cache.keep_workload(placed("db"))
    (tmp_path / "run/workloads/default_web.json").write_bytes(b"{")
    assert [p.workload.metadata.name for p in cache.workloads()] == ["db"]


def test_a_disk_that_takes_nothing_does_not_stop_the_agent(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the directory should be")
    Cache(tmp_path / "run", tmp_path / "state").keep_document(NodeDocument(node="n", format=FORMAT))
