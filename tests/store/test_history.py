"""What is kept of the past is shared fairly: one object that changes without end does not cost the others theirs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.errors import Compacted
from j10ce.model.kinds import Meta, NodeQoS, NodeQoSStatus, NodeReport
from j10ce.model.stored import Event
from j10ce.store.sqlite.store import SqliteStore
from j10ce.store.table import Table
from j10ce.testing.build import WALL


def event(revision: int, name: str, text: str = "", type_: str = "MODIFIED") -> Event:
    status = NodeQoSStatus(node=NodeReport(boot_id=text))
    made = NodeQoS(metadata=Meta(name=name, resource_version=str(revision)), status=status)
    return Event(type_, made, str(revision), made)  # type: ignore[arg-type]


async def changes_heard(table: Table, since: int, until: int) -> list[tuple[str, str]]:
    watch, packed_details = table.watch("NodeQoS", str(since)), []
    async for change in watch:
        packed_details.append((change.object.metadata.name, change.revision))
        if int(change.revision) >= until:
            break
    return packed_details


@pytest.mark.parametrize("size", [1000, 1], ids=["large ones", "many small ones"])
async def test_a_node_that_reports_without_end_expires_only_its_own_history(size: int) -> None:
    table = Table(0, kept=200, kept_bytes=100_000)
    table.apply(event(1, "n1", type_="ADDED"), 100)
    table.apply(event(2, "evil", type_="ADDED"), 100)
    for revision in range(3, 1000):
        name = "n1" if revision % 100 == 0 else "evil"
        table.apply(event(revision, name), 100 if name == "n1" else size)
    heard = await changes_heard(table, 2, 999)
    assert [r for name, r in heard if name == "n1"] == [str(n) for n in range(100, 1000, 100)]
    assert heard[-1] == ("evil", "999"), "its latest state is sent"
    assert [int(r) for _, r in heard] == sorted({int(r) for _, r in heard})


async def test_what_a_watcher_saw_last_is_not_guessed_where_changes_are_gone() -> None:
    """Whoever compares with the state before would take a large change for a small one."""
    table = Table(0, kept=200, kept_bytes=100_000)
    for revision in range(1, 1000):
        table.apply(event(revision, "evil", type_="ADDED" if revision == 1 else "MODIFIED"), 1)
    change = await anext(table.watch("NodeQoS", "1"))
    assert int(change.revision) > 2
    assert change.old is None


async def test_what_everybody_writes_is_still_bounded() -> None:
    table = Table(0, kept=200, kept_bytes=100_000)
    for revision in range(1, 1000):
        table.apply(event(revision, f"n{revision % 50}", type_="ADDED" if revision < 50 else "MODIFIED"), 1000)
    with pytest.raises(Compacted):
        table.watch("NodeQoS", "1")
    assert len(await changes_heard(table, 990, 999)) == 9


async def test_what_is_forgotten_is_gone_from_the_file_too(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "objects.db", lambda: WALL, kept=64)
    for name in ("n1", "evil"):
        await store.put(NodeQoS(metadata=Meta(name=name)))
    since = (await store.list("NodeQoS")).revision
    evil = await store.get("NodeQoS", "", "evil")
    for n in range(500):
        await store.put(replace(evil, status=NodeQoSStatus(node=NodeReport(workloads=n))), part="status")
    store.watch("NodeQoS", since)
    await store.close()
    with sqlite3.connect(tmp_path / "objects.db") as sql:
        ((rows,),) = sql.execute("SELECT count(*) FROM changes")
    sql.close()
    assert rows <= 70
    again = SqliteStore(tmp_path / "objects.db", lambda: WALL, kept=64)
    change = await anext(again.watch("NodeQoS", since))
    assert change.object.metadata.name == "evil"
    await again.close()
