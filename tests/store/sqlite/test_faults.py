"""The file when things go wrong: damage, strangers, full disks, sudden death."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.errors import Busy, Compacted, Corrupt, Denied, StoreError, Unsupported
from j10ce.model.kinds import ManagedFields
from j10ce.model.stored import Event, Key
from j10ce.store.sqlite.database import MOST_ROWS, Database, Row, Trim
from j10ce.store.sqlite.store import SqliteStore
from j10ce.store.sqlite.writer import Job, Jobs, Writer
from j10ce.store.store import ABSENT
from j10ce.testing.build import WALL, reservation
from j10ce.testing.conformance_store import KIND

WRITER = """
import asyncio, sys
from pathlib import Path
from j10ce.store.sqlite.store import SqliteStore
from j10ce.testing.build import WALL, reservation

async def write(store, worker):
    for n in range(100_000):
        made = await store.put(reservation(f"p-{worker}-{n}", cpu="1"))
        print(made.metadata.name, made.metadata.resource_version, flush=True)

async def main():
    store = SqliteStore(Path(sys.argv[1]), lambda: WALL)
    await asyncio.gather(*(write(store, worker) for worker in range(8)))

asyncio.run(main())
"""


def wall() -> float:
    return WALL


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "objects.db"


async def filled(path: Path, count: int = 200) -> None:
    store = SqliteStore(path, wall)
    await asyncio.gather(*(store.put(reservation(f"p-{n}", cpu="1")) for n in range(count)))
    await store.close()


async def test_only_the_owner_may_read_the_file(path: Path) -> None:
    await filled(path, 1)
    assert path.stat().st_mode & 0o777 == 0o600
    store = SqliteStore(path, wall)
    await store.put(reservation("more"))
    assert [p.name for p in path.parent.iterdir() if p.stat().st_mode & 0o077] == []
    await store.close()


async def test_every_commit_is_flushed(path: Path) -> None:
    store = SqliteStore(path, wall)
    sql = store._writer._database._sql
    assert sql.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert sql.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    await store.close()


def damage_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"rubbish" * 10)


def damage_pages(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def cut_to_nothing(path: Path) -> None:
    os.truncate(path, 0)


@pytest.mark.parametrize("damage", [damage_header, damage_pages, cut_in_half, cut_to_nothing])
async def test_a_damaged_file_is_refused_and_copied(path: Path, damage: object) -> None:
    await filled(path)
    assert callable(damage)
    damage(path)
    harmed = path.read_bytes()
    for _ in range(2):  # restarting in a loop does not fill the disk with copies
        with pytest.raises(Corrupt, match=r"a copy is kept in .*corrupt-"):
            SqliteStore(path, wall)
    (copy,) = (p for p in path.parent.iterdir() if ".corrupt-" in p.name and not p.name.endswith("-wal"))
    assert copy.read_bytes() == harmed
    assert copy.stat().st_mode & 0o077 == 0


def written_over(path: Path, name: str, old: str, new: str) -> None:
    """As another release would have written it."""
    sql = sqlite3.connect(path)
    for table in ("objects", "changes"):
        (column,) = {"objects": ("name = ?",), "changes": ("instr(data, '\"' || ? || '\"')",)}[table]
        sql.execute(f"UPDATE {table} SET data = CAST(replace(data, ?, ?) AS BLOB) WHERE {column}", (old, new, name))
    sql.commit()
    sql.close()


async def test_a_field_of_a_later_release_is_left_out(path: Path) -> None:
    await filled(path)
    written_over(path, "p-7", '"spec":{', '"spec":{"colour":"red",')
    store = SqliteStore(path, wall)
    assert await store.get(KIND, "default", "p-7")
    assert store.unreadable() == {}
    await store.close()


async def test_what_nobody_can_read_is_left_out_counted_and_kept(path: Path) -> None:
    await filled(path)
    written_over(path, "p-7", '"spec":', '"spex":')
    before = held_bytes(path, "p-7")
    store = SqliteStore(path, wall)
    found = {obj.metadata.name for obj in (await store.list(KIND)).items}
    assert "p-7" not in found
    assert "p-6" in found
    assert store.unreadable() == {KIND: 1}
    with pytest.raises(StoreError, match="cannot be read"):
        await store.put(reservation("p-7"))
    with pytest.raises(StoreError, match="would not be all of them"):
        await store.snapshot()
    assert await store.put(reservation("fresh"))
    await store.close()
    assert held_bytes(path, "p-7") == before


async def test_a_watch_from_before_something_unreadable_has_to_list_again(path: Path) -> None:
    await filled(path)
    store = SqliteStore(path, wall)
    before = (await store.list(KIND)).revision
    await store.put(reservation("late"))
    await store.close()
    written_over(path, "late", '"spec":', '"spex":')
    store = SqliteStore(path, wall)
    with pytest.raises(Compacted):
        await anext(store.watch(KIND, before))
    await store.close()


def held_bytes(path: Path, name: str) -> bytes:
    sql = sqlite3.connect(path)
    (data,) = sql.execute("SELECT data FROM objects WHERE name = ?", (name,)).fetchone()
    sql.close()
    return bytes(data)


async def test_a_newer_format_is_left_alone(path: Path) -> None:
    await filled(path, 1)
    sql = sqlite3.connect(path)
    sql.execute("PRAGMA user_version = 99")
    sql.close()
    before = path.read_bytes()
    with pytest.raises(Unsupported, match="format 99"):
        SqliteStore(path, wall)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    sql = sqlite3.connect(path)
    sql.execute("CREATE TABLE theirs (a)")
    sql.close()
    before = path.read_bytes()
    with pytest.raises(Denied, match="another program"):
        SqliteStore(path, wall)
    assert path.read_bytes() == before


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(Denied, match="cannot open"):
        SqliteStore(tmp_path, wall)


async def test_a_second_manager_is_refused(path: Path) -> None:
    store = SqliteStore(path, wall)
    with pytest.raises(Busy, match="another manager"):
        SqliteStore(path, wall)
    await store.close()
    await SqliteStore(path, wall).close()


def test_a_creation_that_died_half_way_is_repeated(path: Path) -> None:
    path.parent.mkdir()
    path.with_name("objects.db.new").write_bytes(b"half a database")
    Database(path, WALL).close()
    assert path.exists()


async def test_a_full_disk_refuses_writes_whole_and_recovers(path: Path) -> None:
    store = SqliteStore(path, wall)
    await store.put(reservation("first", cpu="1"))
    sql = store._writer._database._sql
    (pages,) = sql.execute("PRAGMA page_count").fetchone()
    sql.execute(f"PRAGMA max_page_count = {pages}")
    writes = (store.put(reservation(f"p-{n}", cpu="1")) for n in range(500))
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert refused
    assert all(isinstance(e, StoreError) and "full: nothing was written" in str(e) for e in refused)
    held = (await store.list(KIND)).items
    assert len(held) == 1 + len(outcomes) - len(refused)

    sql.execute("PRAGMA max_page_count = 1000000")
    lost = next(n for n, outcome in enumerate(outcomes) if outcome in refused)
    again = await store.put(reservation(f"p-{lost}", cpu="1"), expect=ABSENT)  # what was refused is not there
    await store.close()
    store = SqliteStore(path, wall)
    assert (await store.list(KIND)).items == tuple(sorted((*held, again), key=lambda obj: obj.metadata.name))
    await store.close()


async def test_what_was_decided_on_top_of_a_failed_write_fails_too(path: Path) -> None:
    store = SqliteStore(path, wall)
    store._writer._database._sql.execute("PRAGMA query_only = 1")
    outcomes = await asyncio.gather(
        *(store.put(reservation("db", cpu=str(n))) for n in range(1, 5)),
        store.put(reservation("db", cpu="4")),
        store.delete(KIND, "default", "db"),
        return_exceptions=True,
    )
    assert all(isinstance(outcome, StoreError) for outcome in outcomes)
    assert not (await store.list(KIND)).items
    store._writer._database._sql.execute("PRAGMA query_only = 0")
    made = await store.put(reservation("db", cpu="9"))
    assert (await store.list(KIND)).items == (made,)
    await store.close()


class FailsOnce:
    """A database whose first write fails, once it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.written: list[Row] = []

    def write(self, rows: Sequence[Row], trims: Iterable[Trim] = (), discards: Sequence[Key] = ()) -> None:
        if not self.begun.is_set():
            self.begun.set()
            self.go.wait()
            raise StoreError("the disk is full")
        self.written += rows

    def close(self) -> None: ...


async def test_what_was_queued_behind_a_failed_write_is_not_written() -> None:
    database, answers = FailsOnce(), dict[str, bool]()

    def settle(jobs: Jobs, failure: StoreError | None) -> None:
        answers.update({job.row.event.object.metadata.name: failure is None for job in jobs if job.row})

    def job(epoch: int, name: str) -> Job:
        row = Row(Event("ADDED", reservation(name), "1"), b"")
        return Job(epoch, asyncio.get_running_loop().create_future(), row)

    writer = Writer(database, settle)  # type: ignore[arg-type]
    writer.put([job(0, "first")])
    database.begun.wait()
    writer.put([job(0, "on top"), after := job(1, "decided later")])
    database.go.set()
    await asyncio.to_thread(writer.close)
    await asyncio.sleep(0)
    assert database.written == [after.row]
    assert answers == {"first": False, "on top": False, "decided later": True}


async def test_a_cancelled_caller_does_not_harm_the_others(path: Path) -> None:
    store = SqliteStore(path, wall)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(store.put(reservation(f"p-{n}"))) for n in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
    survivors = {task.result().metadata.name for task in tasks[1::2]}
    assert survivors <= {obj.metadata.name for obj in (await store.list(KIND)).items}
    await store.close()


async def test_writers_that_wait_together_share_commits(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(path, wall)
    sizes: list[int] = []
    write = store._writer._database.write

    def counted(rows: Sequence[Row], trims: Iterable[Trim] = (), discards: Sequence[Key] = ()) -> None:
        sizes.append(len(rows))
        write(rows, trims, discards)

    monkeypatch.setattr(store._writer._database, "write", counted)
    await asyncio.gather(*(store.put(reservation(f"p-{n}")) for n in range(100)))
    assert sum(sizes) == 100
    assert len(sizes) < 20
    await store.close()


async def test_what_is_written_together_is_read_after_a_restart(path: Path) -> None:
    """More rows than one statement takes; and of one object everything that can happen to it, in one transaction."""
    store = SqliteStore(path, wall)
    async with asyncio.TaskGroup() as group:
        for n in range(2 * MOST_ROWS + 1):
            group.create_task(store.put(reservation(f"p-{n}")))
        for name in ("gone", "back"):
            group.create_task(store.put(reservation(name, cpu="1")))
            group.create_task(store.delete(KIND, "default", name))
        group.create_task(store.put(reservation("back", cpu="2")))
    written = await store.list(KIND)
    await store.close()
    store = SqliteStore(path, wall)
    assert await store.list(KIND) == written
    names = {obj.metadata.name for obj in written.items}
    assert names == {f"p-{n}" for n in range(2 * MOST_ROWS + 1)} | {"back"}
    watch = store.watch(KIND, str(int(written.revision) - 3))
    assert [(e.type, e.object.metadata.name) for e in [await anext(watch) for _ in range(3)]] == [
        ("ADDED", "back"),
        ("DELETED", "back"),
        ("ADDED", "back"),
    ]
    await store.close()


@pytest.mark.parametrize("round_", range(4))
async def test_nothing_acknowledged_is_lost_by_a_kill(path: Path, python: str, clone: Path, round_: int) -> None:
    path.parent.mkdir()
    env = {**os.environ, "PYTHONPATH": str(clone / "src")}
    with subprocess.Popen([python, "-c", WRITER, path], stdout=subprocess.PIPE, text=True, env=env) as writer:
        assert writer.stdout
        acknowledged = dict(writer.stdout.readline().split() for _ in range(random.Random(round_).randrange(50, 800)))
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read()
    acknowledged.update(line.split() for line in rest.splitlines(keepends=True) if line.endswith("\n"))
    store = SqliteStore(path, wall)
    held = {obj.metadata.name: obj.metadata.resource_version for obj in (await store.list(KIND)).items}
    assert acknowledged.items() <= held.items()
    await store.close()


async def test_what_cannot_be_written_stands_in_nobodys_way(path: Path) -> None:
    """The key of an object that no encoder takes can be used at once."""
    deep: dict[str, object] = {}
    for _ in range(20_000):
        deep = {"a": deep}
    store = SqliteStore(path, wall)
    bad = reservation("p")
    bad = replace(bad, metadata=replace(bad.metadata, managed_fields=(ManagedFields(fields_v1=deep),)))
    with pytest.raises(RecursionError):
        await store.put(bad)
    made = await store.put(reservation("p"), expect=ABSENT)
    assert (await store.get(KIND, made.metadata.namespace, "p")) == made
    await store.close()


async def test_what_was_stored_under_wider_bounds_is_read_without_what_is_beyond(path: Path) -> None:
    store = SqliteStore(path, wall)
    await store.put(reservation("p"))
    await store.close()
    with sqlite3.connect(path) as sql:
        for table in ("objects", "changes"):
            sql.execute(f'UPDATE {table} SET data = replace(data, \'"uid"\', \'"generateName":"{"x" * 5000}","uid"\')')
    sql.close()
    store = SqliteStore(path, wall)
    (held,) = (await store.list(KIND)).items
    assert (held.metadata.name, held.metadata.generate_name) == ("p", "")
    await store.close()
