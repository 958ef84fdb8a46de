"""What the API does to objects, whatever carries it: one decoding and one validation behind every front end."""

from __future__ import annotations

import asyncio
import secrets
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec.structs import replace

from j10ce.daemon.pace import SLICE, Slices
from j10ce.errors import AlreadyExists, Conflict, Denied, Finding, Invalid, NotFound, StoreError, cut, shown
from j10ce.http.status import Refusal
from j10ce.manager.access.roles import admit
from j10ce.manager.api.dependents import DeleteOptions, Preconditions, let_go
from j10ce.manager.api.query import ANY_REVISION, Position, Query
from j10ce.manager.changes import config as apply_config
from j10ce.manager.changes.nulls import fields_given, without_finalizers
from j10ce.manager.changes.ownership import FieldWriter, applied, refuse, updated
from j10ce.manager.changes.patches import merge, patched, read_operations
from j10ce.manager.fairness.lines import Lines
from j10ce.manager.identity import Role, current
from j10ce.model.bounds import MOST_OBJECT, MOST_REPORT
from j10ce.model.catalogue import Kind
from j10ce.model.kinds import NodeQoS, Object
from j10ce.model.schema import (
    convert,
    encode,
    parse_plain,
    parse_right,
    parse_sent,
    plain,
    refuse_crowd,
    refuse_repeated,
)
from j10ce.model.stored import Key, Listing, Part, key_of
from j10ce.policy.validation.reported import report_findings
from j10ce.store.mirror import Mirror
from j10ce.store.revise import check, revise
from j10ce.store.store import ABSENT, ANY, Discarding, Filling, Store

Validate = Callable[[Object], list[Finding]]
Change = Callable[[Object], Object]
R = TypeVar("R")

MOST_TRIES: Final = 10
REPORTS_UNTIL, WRITES_UNTIL = 0.8, 0.95  # how full a store may be
PAUSE_S: Final = 0.001  # doubled before every further try
SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # none that make words


class Author(NamedTuple):
    """Who owns what a write changes. `strays`, where given, takes unknown fields, which are dropped then."""

    name: str = "unknown"
    strays: list[Finding] | None = None


NOBODY: Final = Author()
DELETE_AT_ONCE: Final = DeleteOptions()


class Page(NamedTuple):
    items: tuple[Object, ...]
    revision: str
    rest: Position | None = None
    remaining: int = 0


class Verbs:
    """`mirrors`, by kind, answer those who ask for any revision (0): at once, also while the store is away. `audited`
    is the store for what a request changes beside its object: the audit log has each. `room` raises where an object
    makes the documents of nodes too large."""

    def __init__(
        self,
        store: Store,
        validate: Validate,
        wall: Callable[[], float],
        mirrors: Mapping[str, Mirror],
        audited: Store | None = None,
        room: Callable[[Object], None] = lambda _: None,
    ) -> None:
        self.store, self._audited, self.slices = store, audited or store, Slices()
        self.lines = Lines(self.slices)
        self._validate, self.wall, self._mirrors, self._room = validate, wall, mirrors, room
        self._fullness = store.fullness if isinstance(store, Filling) else float  # which is 0.0
        self._turns: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._lists: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get(self, key: Key, since: str = "") -> Object:
        if since == ANY_REVISION and (held := self._held(key.kind)):
            return held.get(key)
        return await self.store.get(*key)

    async def spelled(self, items: Sequence[Object], work: Callable[[Sequence[Object]], R]) -> list[R]:
        """What `work` makes of a page. Long ones of one caller are made one after the other: how large an answer
        is, and whether the caller has room for it, shows only when it is there."""
        if len(items) <= SLICE:
            return await self.slices.of(items, work)
        async with self._lists.setdefault(current().caller.name, asyncio.Lock()):
            return await self.slices.of(items, work)

    async def list(self, kind: Kind, namespace: str | None, query: Query) -> Page:
        if query.since == ANY_REVISION and not query.exact and (held := self._held(kind.name)):
            return await page(held.listing(namespace), query, self.slices)
        return await page(await self.store.list(kind.name, namespace), query, self.slices)

    async def create(self, kind: Kind, namespace: str, raw: bytes, *, dry: bool = False, by: Author = NOBODY) -> Object:
        """A name that was generated and is taken is generated again."""
        wanted = self._read(kind, raw, namespace, by)
        if wanted.metadata.resource_version:
            raise Refusal(400, "metadata.resourceVersion: what is yet to be created has none; leave it out")
        wish = updated(None, wanted, self._writer(by, "spec"))
        generated = bool(wish.metadata.generate_name) and not wish.metadata.name
        tries = MOST_TRIES if generated else 1
        while True:
            obj = _named(wish) if generated else wish
            self._check(obj)
            _admit(None, obj, dry)
            tries -= 1
            try:
                return await self._put_new(obj, dry)
            except Conflict as e:
                if not tries:
                    raise AlreadyExists(str(e)) from None

    async def replace(
        self, kind: Kind, key: Key, part: Part, raw: bytes, *, dry: bool = False, by: Author = NOBODY
    ) -> Object:
        wish = self._read(kind, raw, key.namespace, by, part)
        if wish.metadata.name != key.name:
            raise _mismatch("metadata.name", wish.metadata.name, key.name)
        return await self._update(key, part, lambda _: wish, by, claimed=wish.metadata.resource_version, dry=dry)

    async def patch(
        self, kind: Kind, key: Key, part: Part, raw: bytes, *, dry: bool = False, by: Author = NOBODY
    ) -> Object:
        """JSON merge patch (RFC 7396)."""
        wish = parse_sent(raw)
        _refuse_repeated(raw, part, by)
        meta = wish.get("metadata") if isinstance(wish, dict) else None
        claimed = meta.get("resourceVersion") if isinstance(meta, dict) else None

        def merged(old: Object) -> Object:
            return _still(key, convert(without_finalizers(merge(plain(old), wish)), kind.struct, by.strays))

        return await self._update(key, part, merged, by, claimed=str(claimed or ""), dry=dry)

    async def patch_json(
        self, kind: Kind, key: Key, part: Part, raw: bytes, *, dry: bool = False, by: Author = NOBODY
    ) -> Object:
        """JSON patch (RFC 6902). A resourceVersion that it writes is one that it claims."""
        operations = read_operations(raw)
        _refuse_repeated(raw, part, by)

        def changed(old: Object) -> Object:
            new = _still(key, convert(patched(parse_plain(encode(old)), operations), kind.struct, by.strays))
            check(old, key, new.metadata.resource_version or old.metadata.resource_version)
            return new

        return await self._update(key, part, changed, by, claimed="", dry=dry)

    async def apply(
        self, kind: Kind, key: Key, part: Part, raw: bytes, *, by: Author, force: bool = False, dry: bool = False
    ) -> tuple[Object, bool]:
        """Server-side apply: (the object, whether it was created). Raises FieldConflict."""
        config = await apply_config.read(raw, kind, key, part, by.strays)

        def changed(old: Object) -> Object:
            writer = self._writer(by, part)
            new = _clients_part(old, applied(old, config.said, key, kind.struct, writer))
            if not force:
                refuse(old, new, writer)
            return replace(new, metadata=replace(new.metadata, uid=config.uid))

        for _ in range(MOST_TRIES):
            try:
                return await self._change(key, part, changed, claimed=config.revision, dry=dry), False
            except NotFound:
                if part == "status" or config.uid or config.revision:
                    raise
            made = applied(None, config.said, key, kind.struct, self._writer(by, part))
            self._check(made)
            _admit(None, made, dry)
            try:
                return await self._put_new(made, dry), True
            except Conflict:
                continue  # someone else has just created it
        raise _restless(key)

    async def discard(self, key: Key) -> None:
        """Delete what nobody can read. Nobody can say either whose it is, so that it is an administrator's to do."""
        if current().caller.role is not Role.ADMIN:
            raise Denied(f"{current().caller} may not delete what cannot be read; admin may")
        if not isinstance(self.store, Discarding):
            raise NotFound(f"{key}: this store has nothing that cannot be read")
        admit(None, None)
        await self.store.discard(*key)

    async def delete(self, key: Key, options: DeleteOptions = DELETE_AT_ONCE, *, dry: bool = False) -> Object:
        wanted = options.preconditions or Preconditions()
        for attempt in range(MOST_TRIES):
            if attempt:
                await asyncio.sleep(PAUSE_S * 2**attempt)
            old = await self.store.get(*key)
            if wanted.uid and wanted.uid != old.metadata.uid:
                raise _another(key, old, wanted.uid)
            admit(old, None, dry=dry or bool(options.dry_run))
            if dry or options.dry_run:
                return old
            seen = old.metadata.resource_version if wanted.uid else ANY
            if options.orphans:
                check(old, key, wanted.resource_version or ANY)
                await let_go(self._audited, old)
            try:
                return await self.store.delete(*key, expect=wanted.resource_version or seen)
            except Conflict:  # others write it: with a uid alone, the one that is meant is still there
                if wanted.resource_version:
                    raise
        raise _restless(key)

    async def _update(self, key: Key, part: Part, change: Change, by: Author, *, claimed: str, dry: bool) -> Object:
        """A change whose owner takes what it changes."""

        def owned(old: Object) -> Object:
            return updated(old, _clients_part(old, change(old)), self._writer(by, part))

        return await self._change(key, part, owned, claimed=claimed, dry=dry)

    async def _change(self, key: Key, part: Part, change: Change, *, claimed: str, dry: bool) -> Object:
        """Callers of one object take turns: a write cannot be read before it is on disk, so they would all but one
        lose, try after try, for as long as the disk takes."""
        async with self._turns.setdefault(key, asyncio.Lock()):
            return await self._change_alone(key, part, change, claimed=claimed, dry=dry)

    async def _change_alone(self, key: Key, part: Part, change: Change, *, claimed: str, dry: bool) -> Object:
        """Read, change, write; again when someone was faster, unless the caller claimed a revision."""
        for attempt in range(MOST_TRIES):
            if attempt:  # a keeper or another manager was faster, and may still be on the way to the disk
                await asyncio.sleep(PAUSE_S * 2**attempt)
            old = await self.store.get(*key)
            new = change(old)
            if new.metadata.uid not in ("", old.metadata.uid):
                raise _another(key, old, new.metadata.uid)
            if part == "spec":
                self._check(new)
            elif isinstance(new, NodeQoS) and (findings := report_findings(new)):
                raise Invalid(findings, f"report of {new.metadata.name}")
            elif isinstance(new, NodeQoS):
                _check_size("status.node", new.status.node, MOST_REPORT, new)
            _admit(old, new, dry)
            self._make_room(part)
            expect = claimed or old.metadata.resource_version
            try:
                if dry:
                    revision = old.metadata.resource_version
                    return revise(old, new, expect=expect, part=part, revision=revision, wall=self.wall())
                return await self.store.put(new, expect=expect, part=part)
            except Conflict:
                if claimed:
                    raise
        raise _restless(key)

    def _make_room(self, part: Part) -> None:
        """A store that fills takes no reports, then nothing but deletes and what administrators write."""
        used = self._fullness()
        until = REPORTS_UNTIL if part == "status" else WRITES_UNTIL
        if used >= until and current().caller.role is not Role.ADMIN:
            what = "reports" if part == "status" else "new objects and changes"
            raise StoreError(f"the store is {used:.0%} full and takes no {what}: delete something, or raise its quota")

    async def _put_new(self, obj: Object, dry: bool) -> Object:
        self._make_room("spec")
        if not dry:
            return await self.store.put(obj, expect=ABSENT)
        listing = await self.store.list(obj.kind, obj.metadata.namespace)
        old = next((o for o in listing.items if o.metadata.name == obj.metadata.name), None)
        return revise(old, obj, expect=ABSENT, part="spec", revision="", wall=self.wall())

    def _held(self, kind: str) -> Mirror | None:
        """None before everything is read: then only the store can tell."""
        held = self._mirrors.get(kind)
        return held if held is not None and held.synced.is_set() else None

    def _writer(self, by: Author, part: Part) -> FieldWriter:
        return FieldWriter(by.name, part, self.wall())

    def _read(self, kind: Kind, raw: bytes, namespace: str, by: Author, part: Part = "spec") -> Object:
        obj = _parsed(raw, kind, by)
        _refuse_repeated(raw, part, by)
        if obj.metadata.namespace == namespace:
            return obj
        if obj.metadata.namespace:
            raise _mismatch("metadata.namespace", obj.metadata.namespace, namespace)
        return replace(obj, metadata=replace(obj.metadata, namespace=namespace))

    def _check(self, obj: Object) -> None:
        if findings := self._validate(obj):
            raise Invalid(findings, f"{obj.kind} {obj.metadata.name}")
        self._room(obj)


async def page(listing: Listing, query: Query, slices: Slices) -> Page:
    """Later pages show the present, under the first page's revision: a watch from there brings the differences."""
    items, revision = listing.items, listing.revision
    if query.position:
        revision, after = query.position
        items = items[bisect_right(items, after, key=key_of) :]
    if not query.selects_all:
        items = tuple(chain.from_iterable(await slices.of(items, lambda some: [*filter(query.selects, some)])))
    if not query.limit or len(items) <= query.limit:
        return Page(items, revision)
    shown = items[: query.limit]
    return Page(shown, revision, Position(revision, key_of(shown[-1])), len(items) - query.limit)


def _refuse_repeated(raw: bytes, part: Part, by: Author) -> None:
    """A node's report is left out: a program writes it, often, and it names many things alike."""
    if part == "spec" or current().caller.role is not Role.NODE:
        refuse_repeated(raw, by.strays)


def _parsed(raw: bytes, kind: Kind, by: Author) -> Object:
    """Clients written in Go send `creationTimestamp: null` with whatever they create, templates `labels: null`."""
    refuse_crowd(raw)
    obj = parse_right(raw, kind.struct)
    if obj is None:  # it is looked at value by value, once
        obj = convert(fields_given(parse_sent(raw), kind.struct), kind.struct, by.strays)
    return obj  # type: ignore[return-value]


def _named(wish: Object) -> Object:
    suffix = "".join(secrets.choice(SUFFIX_LETTERS) for _ in range(5))
    return replace(wish, metadata=replace(wish.metadata, name=wish.metadata.generate_name + suffix))


def _clients_part(old: Object, new: Object) -> Object:
    """Of a node's status a client writes `node`; the rest is the manager's own."""
    if isinstance(old, NodeQoS) and isinstance(new, NodeQoS):
        return replace(new, status=replace(old.status, node=new.status.node))
    return new


def _admit(old: Object | None, new: Object, dry: bool) -> None:
    _check_size("", new, MOST_OBJECT, new)
    admit(old, new, dry=dry)


def _check_size(path: str, part: Struct, most: int, of: Object) -> None:
    """As it will be stored: patches may add to what is there."""
    size = len(encode(part))
    if size > most:
        raise Invalid(
            [Finding(path, None, f"{size} bytes", f"at most {most} are kept")], f"{of.kind} {of.metadata.name}"
        )


def _still(key: Key, changed: Struct) -> Object:
    new: Object = changed  # type: ignore[assignment]
    if key_of(new) != key:
        raise _mismatch("metadata", str(key_of(new)), str(key))
    return new


def _another(key: Key, obj: Object, uid: str) -> Conflict:
    return Conflict(f"{key} has uid {obj.metadata.uid}, not {cut(uid)}: it was deleted and made again; read it again")


def _restless(key: Key) -> Conflict:
    return Conflict(f"{key} changed {MOST_TRIES} times meanwhile; try again")


def _mismatch(field: str, body: str, path: str) -> Refusal:
    return Refusal(400, f"{field} is {shown(body)} in the body and {path!r} in the path")
