"""backup, restore and migrate as a user types them, between a running manager, SQLite files and etcd."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from sqlite3 import connect
from typing import Any

import pytest
from click.testing import CliRunner, Result

from j10ce.cli.main import cli
from j10ce.errors import Busy, Conflict, NotFound, StoreError
from j10ce.model.stored import Listing
from j10ce.store.backup import digest
from j10ce.store.schemes import open_store
from j10ce.store.store import Movable
from j10ce.testing.build import WALL, profile, reservation
from j10ce.testing.conformance_store import with_cpu
from tests.manager.process import end, start


def typed(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def filled(url: str) -> Listing:
    async def fill() -> Listing:
        store = open_store(url, lambda: WALL)
        await store.put(profile("mine"))
        for n in range(150):
            made = await store.put(reservation(f"db-{n}", cpu="1"))
        await store.put(with_cpu(made, "2"))
        assert isinstance(store, Movable)
        listing = await store.snapshot()
        await store.close()
        return listing

    return asyncio.run(fill())


def held(url: str) -> Listing:
    async def look() -> Listing:
        store = open_store(url, lambda: WALL)
        assert isinstance(store, Movable)
        listing = await store.snapshot()
        await store.close()
        return listing

    return asyncio.run(look())


def digests(listing: Listing) -> list[str]:
    return [digest(obj) for obj in listing.items]


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/objects.db"


def test_a_move_from_sqlite_to_etcd_and_back(sqlite: str, url: str, tmp_path: Path) -> None:
    source = filled(sqlite)
    done = typed("migrate", sqlite, url)
    assert done.exit_code == 0, done.output
    assert "added 150 MinimalReservationPolicy, 1 QoSProfile; compared with the source: the same" in done.output
    assert digests(held(url)) == digests(source)
    back = f"sqlite://{tmp_path}/back.db"
    assert typed("migrate", url, back).exit_code == 0
    assert digests(held(back)) == digests(source)
    assert digests(held(sqlite)) == digests(source), "the source stays"


def test_a_backup_of_etcd_goes_into_sqlite(sqlite: str, url: str, tmp_path: Path) -> None:
    source = filled(url)
    file = tmp_path / "objects.jsonl"
    assert typed("backup", file, "--store", url).exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    output = typed("restore", file, "--store", sqlite, "--dry-run").output
    assert "150 MinimalReservationPolicy, 1 QoSProfile" in output
    assert not Path(sqlite.removeprefix("sqlite://")).exists(), "a dry run makes nothing"
    assert typed("restore", file, "--store", sqlite).exit_code == 0
    assert digests(held(sqlite)) == digests(source)


def test_a_file_that_is_there_is_not_overwritten(sqlite: str, tmp_path: Path) -> None:
    filled(sqlite)
    file = tmp_path / "precious"
    file.write_text("mine")
    assert isinstance(typed("backup", file, "--store", sqlite).exception, FileExistsError)
    assert file.read_text() == "mine"


def test_a_target_that_is_not_empty_is_refused_unless_merged(sqlite: str, url: str) -> None:
    filled(sqlite)
    filled(url)
    assert isinstance(typed("migrate", sqlite, url).exception, Conflict)
    merged = typed("migrate", sqlite, url, "--merge")
    assert merged.exit_code == 0, merged.output
    assert "there already: 150 MinimalReservationPolicy, 1 QoSProfile" in merged.output


def until_recorded(client: Any) -> None:
    """Until the history tells of everything: the manager writes nothing by itself from then on, but status."""
    base = "/apis/j10ce.io/v1alpha1"

    def count(plural: str) -> int:
        return len(client.get(f"{base}/{plural}").json()["items"])

    while count("policyrevisions") < count("minimalreservationpolicies") + count("qosprofiles"):
        pass


def test_a_backup_through_the_api_is_what_the_store_holds(tmp_path: Path, url: str) -> None:
    running = start(tmp_path)
    try:
        wish = {"apiVersion": "j10ce.io/v1alpha1", "kind": "MinimalReservationPolicy", "metadata": {"name": "db"}}
        with running.client() as client:
            path = "/apis/j10ce.io/v1alpha1/namespaces/default/minimalreservationpolicies"
            made: Any = client.post(path, json={**wish, "spec": {"minimum": {"cpu": "1m"}}})
            assert made.status_code == 201, made.text
            until_recorded(client)
        peer = ("--server", running.server, "--token-file", tmp_path / "token")
        done = typed(*peer, "backup", tmp_path / "backup")
        assert done.exit_code == 0, done.output
        busy = typed("backup", tmp_path / "another", "--store", f"sqlite://{tmp_path}/objects.db")
        assert isinstance(busy.exception, Busy), "a running manager owns its file"
        assert running.stop() == 0
    finally:
        end(running.process)
    lines = (tmp_path / "backup").read_text().splitlines()
    names = {json.loads(line).get("metadata", {}).get("name") for line in lines}
    assert {"db", "ls", "be"} <= names
    assert typed("restore", tmp_path / "backup", "--store", url).exit_code == 0
    wishes = [(o.kind, o.metadata.uid, o.metadata.generation) for o in held(url).items]
    assert wishes == [
        (o.kind, o.metadata.uid, o.metadata.generation) for o in held(f"sqlite://{tmp_path}/objects.db").items
    ]


def test_a_backup_through_the_api_is_whole_or_refused(tmp_path: Path, sqlite: str) -> None:
    filled(sqlite)
    sql = connect(tmp_path / "objects.db")
    sql.execute("UPDATE objects SET data = CAST(replace(data, '\"spec\":', '\"spex\":') AS BLOB) WHERE name = 'db-7'")
    sql.execute("INSERT INTO objects VALUES ('KindOfALaterRelease', '', 'x', '{}')")
    sql.commit()
    sql.close()
    running = start(tmp_path)
    try:
        peer = ("--server", running.server, "--token-file", tmp_path / "token")
        refused = typed(*peer, "backup", tmp_path / "backup")
        while "try again when fewer people write" in str(refused.exception):  # a manager that begins writes itself
            refused = typed(*peer, "backup", tmp_path / "backup")
    finally:
        end(running.process)
    assert isinstance(refused.exception, StoreError)
    assert "1 KindOfALaterRelease, 1 MinimalReservationPolicy" in str(refused.exception)
    assert not (tmp_path / "backup").exists()


READING = (("migrate", "{missing}", "{target}"), ("backup", "{file}", "--store", "{missing}"))


@pytest.mark.parametrize("words", READING)
def test_a_mistyped_prefix_of_etcd_is_reported(tmp_path: Path, url: str, words: tuple[str, ...]) -> None:
    filled(url)
    target = f"sqlite://{tmp_path}/target.db"
    done = typed(*(w.format(missing=f"{url}-typo", target=target, file=tmp_path / "backup") for w in words))
    assert isinstance(done.exception, NotFound)
    assert f"no objects in {url}-typo" in str(done.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", READING)
def test_a_store_that_is_not_there_is_not_made_by_whoever_reads_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    missing, target = tmp_path / "typo.db", tmp_path / "target.db"
    urls = {"missing": f"sqlite://{missing}", "target": f"sqlite://{target}", "file": str(tmp_path / "backup")}
    done = typed(*(word.format(**urls) for word in words))
    assert isinstance(done.exception, NotFound)
    assert "typo.db" in str(done.exception)
    assert not list(tmp_path.iterdir())
