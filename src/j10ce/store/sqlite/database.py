"""The SQLite file: creation, checks, loading, and one transaction at a time. Synchronous; one thread at a time."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from j10ce.daemon.strays import Strays
from j10ce.errors import Busy, Corrupt, Denied, NotFound, StoreError, Unsupported
from j10ce.model.kinds import Object
from j10ce.model.stored import Event, Key, Unreadable, key_of
from j10ce.store.reading import read_stored
from j10ce.store.table import Table, first_revision

log = structlog.get_logger()
FORMAT: Final = 1  # PRAGMA user_version
APPLICATION: Final = 0x6A313063  # PRAGMA application_id: "j10c"
MOST_ROWS: Final = 64  # in one statement
LASTING_DAMAGE: Final = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

SCHEMA: Final = """
CREATE TABLE objects (kind TEXT, namespace TEXT, name TEXT, data BLOB NOT NULL,
                      PRIMARY KEY (kind, namespace, name)) WITHOUT ROWID;
CREATE TABLE changes (revision INTEGER PRIMARY KEY, kind TEXT NOT NULL, type TEXT NOT NULL, data BLOB NOT NULL);
CREATE TABLE horizons (kind TEXT PRIMARY KEY, revision INTEGER NOT NULL);  -- '' is where the store began to count
"""
DELETE: Final = "DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?"


class ChangeRow(NamedTuple):
    """One change with its object as JSON."""

    event: Event
    data: bytes


class Trim(NamedTuple):
    """Changes of a kind that need no longer be kept: all up to a revision, and those of some others."""

    kind: str
    revision: int
    thinned: tuple[int, ...] = ()


class BrokenDisk(StoreError):
    """The disk failed in the middle of a commit, so what it holds is not known until it is read again."""


class Database:
    """An open file, locked against every other process."""

    def __init__(self, path: Path, wall: float, *, create: bool = True) -> None:
        """Open, or create; raises Corrupt (a copy is kept), Busy, Denied, NotFound or Unsupported."""
        self.path = path
        self.unread: set[Key] = set()  # left out of the table: what makes no sense to this release
        try:
            if not path.exists():
                if not create:
                    raise NotFound(f"there is no {path}; check the path")
                _create(path, first_revision(wall))
            _check_header(path)
            self._sql = _connect(path)
        except sqlite3.DatabaseError as e:
            raise _opening_failed(path, e) from None
        except OSError as e:
            raise Denied(f"cannot open {path}: {e.strerror}") from None

    def table(self, *, kept: int) -> Table:
        """Everything that the file holds."""
        try:
            horizons: dict[str, int] = dict(self._sql.execute("SELECT kind, revision FROM horizons"))
            table = Table(horizons.pop(""), kept=kept)
            objects = self._sql.execute("SELECT kind, namespace, name, data FROM objects")
            changes = self._sql.execute("SELECT kind, data, type, revision FROM changes ORDER BY revision")
            events = self._events(changes, horizons)
            table.load(self._objects(objects), events, horizons)
        except (sqlite3.DatabaseError, KeyError) as e:
            self._sql.close()
            raise _corrupt(self.path, str(e)) from None
        return table

    def _objects(self, rows: Iterable[tuple[str, str, str, bytes]]) -> Iterator[Object]:
        strays = Strays()
        for *names, data in rows:
            key = Key(*names)
            try:
                yield read_stored(key, data, strays)
            except Unreadable as e:
                log.error("object.skip", kind=key.kind, error=f"{e}; run the release that wrote it")
                self.unread.add(key)

    def _events(self, rows: Iterable[tuple[str, bytes, str, int]], horizons: dict[str, int]) -> list[tuple[Event, int]]:
        """Those after the last that cannot be read, of each kind: whoever watches from before has to list again."""
        events: list[tuple[Event, int]] = []
        before: dict[Key, Object] = {}
        for kind, data, type_, revision in rows:
            try:
                obj = read_stored(Key(kind, "", ""), data, Strays())
            except Unreadable:
                horizons[kind] = revision
                continue
            event = Event(type_, obj, str(revision), before.get(key_of(obj)))  # type: ignore[arg-type]
            events.append((event, len(data)))
            before[key_of(obj)] = obj
        return [(e, size) for e, size in events if int(e.revision) > horizons.get(e.object.kind, 0)]

    def write(self, rows: Sequence[ChangeRow], trims: Iterable[Trim] = (), discards: Sequence[Key] = ()) -> None:
        """All of it in one transaction that survives power loss, or nothing of it and a StoreError."""
        try:
            self._sql.execute("BEGIN IMMEDIATE")
            self._sql.executemany(DELETE, discards)
            self._record(rows)
            for trim in trims:
                self._trim(trim)
            self._sql.execute("COMMIT")
        except sqlite3.Error as e:
            self._roll_back()
            raise _writing_failed(self.path, e) from None

    def close(self) -> None:
        self._sql.close()

    def _record(self, rows: Sequence[ChangeRow]) -> None:
        last = {key_of(row.event.object): row for row in rows}
        gone = [key for key, row in last.items() if row.event.type == "DELETED"]
        self._sql.executemany(DELETE, gone)
        kept = [(*key, row.data) for key, row in last.items() if row.event.type != "DELETED"]
        self._insert("INSERT OR REPLACE INTO objects VALUES", kept)
        changes = [(int(e.revision), e.object.kind, e.type, data) for e, data in rows]
        self._insert("INSERT INTO changes VALUES", changes)

    def _insert(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Every statement gives the interpreter away and has to win it back: so one takes many rows."""
        for begin in range(0, len(rows), MOST_ROWS):
            some = rows[begin : begin + MOST_ROWS]
            places = ",".join([f"({','.join('?' * len(some[0]))})"] * len(some))
            self._sql.execute(f"{statement} {places}", tuple(chain.from_iterable(some)))

    def _trim(self, trim: Trim) -> None:
        self._sql.execute("DELETE FROM changes WHERE kind = ? AND revision <= ?", trim[:2])
        self._sql.executemany("DELETE FROM changes WHERE revision = ?", ((revision,) for revision in trim.thinned))
        self._sql.execute("INSERT OR REPLACE INTO horizons VALUES (?, ?)", trim[:2])

    def _roll_back(self) -> None:
        if self._sql.in_transaction:
            try:
                self._sql.execute("ROLLBACK")
            except sqlite3.Error:
                self._sql.close()  # whatever is written next fails, rather than join a half transaction


def _connect(path: Path) -> sqlite3.Connection:
    kept = 4 * MOST_ROWS  # every number of rows is a statement of its own
    sql = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.5, cached_statements=kept)
    try:
        # One owner: no shared-memory file, and a second manager is refused.
        sql.execute("PRAGMA locking_mode = EXCLUSIVE")
        sql.execute("PRAGMA journal_mode = WAL")
        sql.execute("PRAGMA synchronous = FULL")
        (verdict,) = sql.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
    except sqlite3.DatabaseError:
        sql.close()
        raise
    return sql


def _create(path: Path, revision: int) -> None:
    """Built beside and renamed, so that a file under the final name is whole, or was damaged later."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    sql = sqlite3.connect(fresh, isolation_level=None)
    sql.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {FORMAT}; PRAGMA application_id = {APPLICATION}; COMMIT;")
    sql.execute("INSERT INTO horizons VALUES ('', ?)", (revision,))
    sql.close()
    fresh.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _check_header(path: Path) -> None:
    """Before SQLite may change anything: whose file it is, and which format (sqlite.org/fileformat.html, 1.3)."""
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        raise sqlite3.DatabaseError("it is empty, cut off or no database")
    version, application = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
    if application != APPLICATION:
        raise Denied(f"{path} is a database of another program; name another file")
    if version != FORMAT:
        raise Unsupported(f"store format {version} of {path}", needs=f"another release; this one reads {FORMAT}")


def _opening_failed(path: Path, e: sqlite3.DatabaseError) -> Exception:
    match getattr(e, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return Busy(f"{path} is in use by another manager")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_READONLY:
            return Denied(f"cannot open {path}: {e}; check that it is a file and may be written")
        case sqlite3.SQLITE_FULL:
            return StoreError(f"cannot open {path}: its disk is full; make room, and start again")
        case _:
            return _corrupt(path, str(e))


def _writing_failed(path: Path, e: sqlite3.Error) -> StoreError:
    code = getattr(e, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"the disk of {path} is full: nothing was written; make room, and try again")
    if code in LASTING_DAMAGE:
        return BrokenDisk(f"{path} failed in a commit ({e}): restart the manager once the disk is sound")
    return StoreError(f"cannot write {path}: {e}: nothing was written")


def _corrupt(path: Path, why: str) -> Corrupt:
    """The copy is named by the damaged file's age, so that restarting in a loop keeps one copy, not hundreds."""
    copy = path.with_name(f"{path.name}.corrupt-{path.stat().st_mtime_ns}")
    for suffix in ("", "-wal"):
        damaged, kept = path.with_name(path.name + suffix), copy.with_name(copy.name + suffix)
        if damaged.exists() and not kept.exists():
            shutil.copy2(damaged, kept)
    return Corrupt(f"{path} is damaged ({why}); a copy is kept in {copy}; restore a backup or move the file away")
