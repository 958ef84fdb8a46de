"""backup, restore, migrate: all objects as a file, and from one store into another."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from j10ce.cli.client import Client
from j10ce.cli.output import say
from j10ce.cli.paths import path
from j10ce.cli.peers import Peers
from j10ce.daemon.secret_files import create_private
from j10ce.errors import Conflict, Invalid, NotFound, StoreError
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Object
from j10ce.model.schema import decode
from j10ce.model.stored import Key, Listing, key_of
from j10ce.store import backup
from j10ce.store.backup import Imported, movable
from j10ce.store.schemes import FORMS, open_store
from j10ce.store.store import Movable

PASSES: Final = 5
LEFT_OUT: Final = re.compile(r'^j10ce_objects_unreadable\{kind="(\w+)"\} (\S+)$', re.MULTILINE)
T = TypeVar("T")
wall: Callable[[], float] = time.time  # noqa: TID251  the process's one wall clock
merge_option = click.option("--merge", is_flag=True, help="Add what is missing to a store that is not empty.")


@click.command("backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--store", help=f"Read a store instead of asking the API: {FORMS}.")
@click.pass_obj
def backup_command(peers: Peers, file: Path, store: str | None) -> None:
    """Write all objects into a file that only you can read.

    \b
    Example:
      j10ce-qos backup objects.jsonl
      j10ce-qos backup objects.jsonl --store sqlite:///var/lib/j10ce-qos/store.sqlite
    """
    listing = _whole(store) if store else through_api(peers.api())
    create_private(file, backup.written(listing, wall()))
    say(f"{file}: {len(listing.items)} objects at revision {listing.revision}")


@click.command("restore")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--store", help=f"Where to: {FORMS}; --dry-run needs none.")
@click.option("--dry-run", is_flag=True, help="Check the file, change nothing.")
@merge_option
def restore_command(file: Path, store: str | None, merge: bool, dry_run: bool) -> None:
    """Bring the objects of a backup into an empty store, and prove that they arrived.

    A SQLite file must not be in use: stop its manager first.

    \b
    Example:
      j10ce-qos restore objects.jsonl --store sqlite:///var/lib/j10ce-qos/store.sqlite
      j10ce-qos restore --merge objects.jsonl --store etcd://127.0.0.1:2379
    """
    listing = backup.read(file.read_bytes())
    if dry_run:
        held = _counted(tuple(map(key_of, listing.items)))
        say(f"{file}: {held} at revision {listing.revision}, whole and consistent")
        return
    if not store:
        raise click.UsageError(f"name where to with --store: {FORMS}")
    _report(asyncio.run(_using(store, lambda target: backup.restore(target, listing, merge=merge))), store)


@click.command("migrate")
@click.argument("source")
@click.argument("target")
@merge_option
def migrate_command(source: str, target: str, merge: bool) -> None:
    """Copy all objects from one store into another, and prove that they arrived. The source stays as it is.

    \b
    Example:
      j10ce-qos migrate sqlite:///var/lib/j10ce-qos/store.sqlite etcd://127.0.0.1:2379
    """
    listing = _whole(source, "SOURCE")
    carried = backup.read(backup.written(listing, wall()))

    def restore(store: Movable) -> Awaitable[Imported]:
        return backup.restore(store, carried, merge=merge)

    _report(asyncio.run(_using(target, restore, argument="TARGET")), target)


def through_api(api: Client) -> Listing:
    """All objects of one instant: read until two passes agree on everything but status, which agents always write."""
    first, _ = _pass(api)
    for _ in range(PASSES):
        second, revision = _pass(api)
        if _wishes(first) == _wishes(second):
            _refuse_partial(api)
            return Listing(second, str(revision))
        first = second
    raise StoreError(f"objects changed during each of {PASSES} passes; try again when fewer people write")


def _refuse_partial(api: Client) -> None:
    """Lists leave out what the manager cannot read, kinds that it does not know included: its metrics count it."""
    counts = {kind: int(float(count)) for kind, count in LEFT_OUT.findall(api.get("/metrics")) if float(count)}
    if counts:
        some = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        problem = f"the manager holds objects that its release cannot read ({some}; its log names them)"
        raise StoreError(f"{problem}, so this would not be all of them: correct or delete them first")


def _pass(api: Client) -> tuple[tuple[Object, ...], int]:
    items: list[Object] = []
    revision = 0
    for kind in KINDS.values():
        if kind.stored:
            listing: dict[str, Any] = api.get(path(kind, None))
            items += map(decode, listing["items"])
            revision = max(revision, int(listing["metadata"]["resourceVersion"]))
    return tuple(items), revision


def _wishes(objects: tuple[Object, ...]) -> dict[str, tuple[object, ...]]:
    metas = (obj.metadata for obj in objects)
    return {meta.uid: (meta.generation, meta.labels, meta.annotations) for meta in metas}


def _whole(url: str, argument: str = "--store") -> Listing:
    """Raises NotFound for a store without objects: there are some wherever a manager has run, so the URL is wrong."""
    listing = asyncio.run(_using(url, lambda store: store.snapshot(), create=False, argument=argument))
    if not listing.items:
        raise NotFound(f"there are no objects in {url.partition('?')[0]}; check the address and its prefix")
    return listing


async def _using(
    url: str, work: Callable[[Movable], Awaitable[T]], *, create: bool = True, argument: str = "--store"
) -> T:
    """`argument`: as what the address was given."""
    try:
        store = open_store(url, wall, create=create)
    except Invalid as e:
        raise Invalid([f._replace(path=argument) for f in e.findings], e.what) from None
    try:
        return await work(movable(store, url))
    finally:
        await store.close()


def _report(imported: Imported, store: str) -> None:
    say(f"{store.partition('?')[0]}: added {_counted(imported.added)}; compared with the source: the same")
    if imported.present:
        say(f"there already: {_counted(imported.present)}")
    if imported.conflicts:
        some = ", ".join(map(str, imported.conflicts[:5]))
        raise Conflict(f"{len(imported.conflicts)} objects are there with other content and were left alone: {some}")


def _counted(keys: tuple[Key, ...]) -> str:
    """`3 Hold, 1 NodeQoS`."""
    kinds = [key.kind for key in keys]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))) or "nothing"
