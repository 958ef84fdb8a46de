"""What the API does to objects, whatever carries it: one decoding and one validation behind every front end."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from j10ce.errors import Conflict, Finding, Invalid, NotFound
from j10ce.manager import apply_config
from j10ce.manager.apply import Writer, applied, refuse, updated
from j10ce.manager.failure import AlreadyExists, Refusal
from j10ce.manager.patches import merge, patched, read_operations
from j10ce.manager.query import ANY_REVISION, Position, Query
from j10ce.manager.roles import admit
from j10ce.model.catalogue import Kind
from j10ce.model.kinds import NodeQoS, Object, Strict
from j10ce.model.schema import convert, encode, parse, parse_plain, plain
from j10ce.store.mirror import Mirror
from j10ce.store.revise import Key, Part, check, key_of, revise
from j10ce.store.store import ABSENT, Listing, Store

Validate = Callable[[Object], list[Finding]]
Change = Callable[[Object], Object]

MOST_TRIES: Final = 10
PAUSE_S: Final = 0.001  # doubled before every further try
SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # none that make words


class Author(NamedTuple):
    """Who owns what a write changes. `strays`, where given, takes unknown fields, which are dropped then."""

    name: str = "unknown"
    strays: list[Finding] | None = None


NOBODY: Final = Author()


class Page(NamedTuple):
    items: tuple[Object, ...]
    revision: str
    rest: Position | None = None
    remaining: int = 0


class Preconditions(Strict, frozen=True, kw_only=True):
    uid: str = ""
    resource_version: str = ""


class DeleteOptions(Strict, frozen=True, kw_only=True):
    """As clients send it; deletion is at once, so graces and propagation have nothing to say."""

    api_version: str = "v1"
    kind: str = "DeleteOptions"
    preconditions: Preconditions | None = None
    dry_run: tuple[str, ...] | None = None
    grace_period_seconds: int | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None


class Verbs:
    """`mirrors`, by kind, answer those who ask for any revision (0): at once, also while the store is away."""

    def __init__(
        self, store: Store, validate: Validate, wall: Callable[[], float], mirrors: Mapping[str, Mirror]
    ) -> None:
        self.store = store
        self._validate, self.wall, self._mirrors = validate, wall, mirrors

    async def get(self, key: Key, since: str = "") -> Object:
        if since == ANY_REVISION and (held := self._held(key.kind)):
            return held.get(key)
        return await self.store.get(*key)

    async def list(self, kind: Kind, namespace: str | None, query: Query) -> Page:
        if query.since == ANY_REVISION and not query.exact and (held := self._held(kind.name)):
            return page(held.listing(namespace), query)
        return page(await self.store.list(kind.name, namespace), query)

    async def create(self, kind: Kind, namespace: str, raw: bytes, *, dry: bool = False, by: Author = NOBODY) -> Object:
        """A name that was generated and is taken is generated again."""
        wish = updated(None, self._read(kind, raw, namespace, by), self._writer(by, "spec"))
        generated = bool(wish.metadata.generate_name) and not wish.metadata.name
        tries = MOST_TRIES if generated else 1
        while True:
            obj = _named(wish) if generated else wish
            self._check(obj)
            admit(None, obj, dry=dry)
            tries -= 1
            try:
                return await self._put_new(obj, dry)
            except Conflict as e:
                if not tries:
                    raise AlreadyExists(str(e)) from None

    async def replace(
        self, kind: Kind, key: Key, part: Part, raw: bytes, *, dry: bool = False, by: Author = NOBODY
    ) -> Object:
        wish = self._read(kind, raw, key.namespace, by)
        if wish.metadata.name != key.name:
            raise _mismatch("metadata.name", wish.metadata.name, key.name)
        return await self._update(key, part, lambda _: wish, by, claimed=wish.metadata.resource_version, dry=dry)

    async def patch(
        self, kind: Kind, key: Key, part: Part, raw: bytes, *, dry: bool = False, by: Author = NOBODY
    ) -> Object:
        """JSON merge patch (RFC 7396)."""
        wish = parse_plain(raw)
        meta = wish.get("metadata") if isinstance(wish, dict) else None
        claimed = meta.get("resourceVersion") if isinstance(meta, dict) else None

        def merged(old: Object) -> Object:
            return _still(key, convert(merge(plain(old), wish), kind.struct, by.strays))

        return await self._update(key, part, merged, by, claimed=str(claimed or ""), dry=dry)

    async def patch_json(
        self, kind: Kind, key: Key, part: Part, raw: bytes, *, dry: bool = False, by: Author = NOBODY
    ) -> Object:
        """JSON patch (RFC 6902). A resourceVersion that it writes is one that it claims."""
        operations = read_operations(raw)

        def changed(old: Object) -> Object:
            new = _still(key, convert(patched(parse_plain(encode(old)), operations), kind.struct, by.strays))
            check(old, key, new.metadata.resource_version or old.metadata.resource_version)
            return new

        return await self._update(key, part, changed, by, claimed="", dry=dry)

    async def apply(
        self, kind: Kind, key: Key, part: Part, raw: bytes, *, by: Author, force: bool = False, dry: bool = False
    ) -> tuple[Object, bool]:
        """Server-side apply: (the object, whether it was created). Raises FieldConflict."""
        config = apply_config.read(raw, kind, key, part)

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
            admit(None, made, dry=dry)
            try:
                return await self._put_new(made, dry), True
            except Conflict:
                continue  # someone else has just created it
        raise _restless(key)

    async def delete(self, key: Key, raw: bytes, *, dry: bool = False) -> Object:
        options = parse(raw, DeleteOptions) if raw else DeleteOptions()
        wanted = options.preconditions or Preconditions()
        old = await self.store.get(*key)
        if wanted.uid and wanted.uid != old.metadata.uid:
            raise Conflict(f"{key} has uid {old.metadata.uid}, not {wanted.uid}")
        admit(old, None, dry=dry or bool(options.dry_run))
        if dry or options.dry_run:
            return old
        if wanted.resource_version or wanted.uid:
            return await self.store.delete(*key, expect=wanted.resource_version or old.metadata.resource_version)
        return await self.store.delete(*key)

    async def _update(self, key: Key, part: Part, change: Change, by: Author, *, claimed: str, dry: bool) -> Object:
        """A change whose owner takes what it changes."""

        def owned(old: Object) -> Object:
            return updated(old, _clients_part(old, change(old)), self._writer(by, part))

        return await self._change(key, part, owned, claimed=claimed, dry=dry)

    async def _change(self, key: Key, part: Part, change: Change, *, claimed: str, dry: bool) -> Object:
        """Read, change, write; again when someone was faster, unless the caller claimed a revision."""
        for attempt in range(MOST_TRIES):
            if attempt:  # whoever was faster may still be on the way to the disk, and cannot be read before
                await asyncio.sleep(PAUSE_S * 2**attempt)
            old = await self.store.get(*key)
            new = change(old)
            if new.metadata.uid not in ("", old.metadata.uid):
                raise Conflict(f"{key} has uid {old.metadata.uid}, not {new.metadata.uid}")
            if part == "spec":
                self._check(new)
            admit(old, new, dry=dry)
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

    async def _put_new(self, obj: Object, dry: bool) -> Object:
        if not dry:
            return await self.store.put(obj, expect=ABSENT)
        listing = await self.store.list(obj.kind, obj.metadata.namespace)
        old = next((o for o in listing.items if o.metadata.name == obj.metadata.name), None)
        return revise(old, obj, expect=ABSENT, part="spec", revision="", wall=self.wall())

    def _held(self, kind: str) -> Mirror | None:
        """None before everything is read: then only the store can tell."""
        held = self._mirrors.get(kind)
        return held if held is not None and held.synced.is_set() else None

    def _writer(self, by: Author, part: Part) -> Writer:
        return Writer(by.name, part, self.wall())

    def _read(self, kind: Kind, raw: bytes, namespace: str, by: Author) -> Object:
        obj = _parsed(raw, kind, by)
        if obj.metadata.namespace == namespace:
            return obj
        if obj.metadata.namespace:
            raise _mismatch("metadata.namespace", obj.metadata.namespace, namespace)
        return replace(obj, metadata=replace(obj.metadata, namespace=namespace))

    def _check(self, obj: Object) -> None:
        if findings := self._validate(obj):
            raise Invalid(findings, f"{obj.kind} {obj.metadata.name}")


def page(listing: Listing, query: Query) -> Page:
    """Later pages show the present, under the first page's revision: a watch from there brings the differences."""
    items = tuple(filter(query.selects, listing.items))
    revision = listing.revision
    if query.position:
        revision, after = query.position
        items = tuple(obj for obj in items if key_of(obj) > after)
    if not query.limit or len(items) <= query.limit:
        return Page(items, revision)
    shown = items[: query.limit]
    return Page(shown, revision, Position(revision, key_of(shown[-1])), len(items) - query.limit)


def _parsed(raw: bytes, kind: Kind, by: Author) -> Object:
    """Clients written in Go send `creationTimestamp: null` with whatever they create."""
    try:
        return parse(raw, kind.struct, by.strays)  # type: ignore[return-value]
    except Invalid:
        told = parse_plain(raw)
        meta = told.get("metadata") if isinstance(told, dict) else None
        if not isinstance(meta, dict) or meta.pop("creationTimestamp", "") is not None:
            raise
        return convert(told, kind.struct, by.strays)  # type: ignore[return-value]


def _named(wish: Object) -> Object:
    suffix = "".join(secrets.choice(SUFFIX_LETTERS) for _ in range(5))
    return replace(wish, metadata=replace(wish.metadata, name=wish.metadata.generate_name + suffix))


def _clients_part(old: Object, new: Object) -> Object:
    """Of a node's status a client writes `node`; the rest is the manager's own."""
    if isinstance(old, NodeQoS) and isinstance(new, NodeQoS):
        return replace(new, status=replace(old.status, node=new.status.node))
    return new


def _still(key: Key, changed: Struct) -> Object:
    new: Object = changed  # type: ignore[assignment]
    if key_of(new) != key:
        raise _mismatch("metadata", str(key_of(new)), str(key))
    return new


def _restless(key: Key) -> Conflict:
    return Conflict(f"{key} changed {MOST_TRIES} times meanwhile; try again")


def _mismatch(field: str, body: str, path: str) -> Refusal:
    return Refusal(400, "BadRequest", f"{field} is {body!r} in the body and {path!r} in the path")
