"""etcd's words, as its JSON gateway spells them, and how objects lie in it. Pure.

    PREFIX/objects                      the mark: which batch of writes was the last one
    PREFIX/objects/KIND/NAMESPACE/NAME  an object as JSON; its resourceVersion is its place in the batch that wrote it
    PREFIX/writers/ID                   the fence of a process that writes
    PREFIX/election/leader              who leads
    PREFIX/compaction                   who compacted last

A batch is one transaction, so all its objects share one revision of etcd's. Ours tell them apart:
revision = etcd's revision × 128 + place, where 0 is the one delete that a batch may hold and 127 means all of it.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from j10ce.errors import Invalid, StoreError
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Object
from j10ce.model.schema import parse
from j10ce.store.revise import Key

PLACES: Final = 128
DELETE_PLACE: Final = 0


def revision(main: int, place: int) -> int:
    return main * PLACES + place


def whole(main: int) -> int:
    """The revision that stands for everything up to and with etcd's revision `main`."""
    return revision(main, PLACES - 1)


class Layout(NamedTuple):
    prefix: str

    @property
    def mark(self) -> bytes:
        return f"{self.prefix}/objects".encode()

    @property
    def objects(self) -> bytes:
        return f"{self.prefix}/objects/".encode()

    @property
    def end(self) -> bytes:
        """Behind the mark and all objects: "0" follows "/"."""
        return f"{self.prefix}/objects0".encode()

    @property
    def leader(self) -> bytes:
        return f"{self.prefix}/election/leader".encode()

    @property
    def compaction(self) -> bytes:
        return f"{self.prefix}/compaction".encode()

    def writer(self, name: str) -> bytes:
        return f"{self.prefix}/writers/{name}".encode()

    def path(self, key: Key) -> bytes:
        return self.objects + "/".join(key).encode()

    def key(self, path: bytes) -> Key:
        return Key(*path.removeprefix(self.objects).decode().split("/", 2))


class Word(Struct, frozen=True, omit_defaults=True):
    """Base of all that goes over the wire; bytes travel in base64."""


class Nothing(Word, frozen=True):
    pass


class KeyValue(Word, frozen=True):
    key: bytes = b""
    value: bytes = b""
    create_revision: int = 0
    mod_revision: int = 0
    lease: int = 0


class Header(Word, frozen=True):
    revision: int = 0


class Range(Word, frozen=True):
    key: bytes
    range_end: bytes = b""
    limit: int = 0
    revision: int = 0


class RangeAnswer(Word, frozen=True):
    header: Header = Header()
    kvs: tuple[KeyValue, ...] = ()
    more: bool = False


class Put(Word, frozen=True):
    key: bytes
    value: bytes
    lease: int = 0


class Delete(Word, frozen=True):
    key: bytes


class Compare(Word, frozen=True, omit_defaults=False):
    """That a key was last changed at a revision; revision 0: that there is no such key."""

    key: bytes
    mod_revision: int
    target: Literal["MOD"] = "MOD"


class Txn(Word, frozen=True):
    compare: tuple[Compare, ...] = ()
    success: tuple[Op, ...] = ()
    failure: tuple[Op, ...] = ()


class Op(Word, frozen=True):
    """Exactly one of them."""

    request_put: Put | None = None
    request_range: Range | None = None
    request_delete_range: Delete | None = None
    request_txn: Txn | None = None


class OpAnswer(Word, frozen=True):
    response_range: RangeAnswer = RangeAnswer()
    response_txn: TxnAnswer | None = None


class TxnAnswer(Word, frozen=True):
    header: Header = Header()
    succeeded: bool = False
    responses: tuple[OpAnswer, ...] = ()


class WatchCreate(Word, frozen=True):
    key: bytes
    range_end: bytes = b""
    start_revision: int = 0
    fragment: bool = False


class Watch(Word, frozen=True):
    create_request: WatchCreate


class Change(Word, frozen=True):
    type: Literal["PUT", "DELETE"] = "PUT"
    kv: KeyValue = KeyValue()


class Changes(Word, frozen=True):
    header: Header = Header()
    created: bool = False
    canceled: bool = False
    compact_revision: int = 0
    cancel_reason: str = ""
    fragment: bool = False
    events: tuple[Change, ...] = ()


class Trouble(Word, frozen=True):
    """A refusal; its code is gRPC's."""

    code: int = 2
    message: str = ""
    error: str = ""


class StreamTrouble(Word, frozen=True):
    grpc_code: int = 2
    message: str = ""


class WatchLine(Word, frozen=True):
    result: Changes = Changes()
    error: StreamTrouble | None = None


class Lease(Word, frozen=True):
    """Of grants, keep-alives and revocations alike."""

    ID: int = 0
    TTL: int = 0


class LeaseLine(Word, frozen=True):
    result: Lease = Lease()


class Credentials(Word, frozen=True):
    name: str
    password: str


class Token(Word, frozen=True):
    token: str


class Compaction(Word, frozen=True):
    revision: int


def restored(kv: KeyValue) -> Object:
    """The object in a key; raises StoreError."""
    try:
        kind = msgspec.json.decode(kv.value, type=_KindOnly).kind
        obj: Object = parse(kv.value, KINDS[kind].struct)  # type: ignore[assignment]
        return at_revision(obj, revision(kv.mod_revision, int(obj.metadata.resource_version)))
    except (Invalid, KeyError, ValueError) as e:
        told = f"etcd's {kv.key.decode(errors='replace')} holds no object that this release reads: {e}"
        raise StoreError(f"{told}; correct or delete it with etcdctl") from None


def at_revision(obj: Object, number: int) -> Object:
    return replace(obj, metadata=replace(obj.metadata, resource_version=str(number)))


class _KindOnly(Struct):
    kind: str
