"""etcd's methods and words, and how objects lie in it.

    PREFIX/objects                      the mark: which batch of writes was the last one
    PREFIX/objects-line                 the line: what is added to etcd's revisions
    PREFIX/objects/KIND/NAMESPACE/NAME  an object as JSON; its resourceVersion is its place in the batch that wrote it
    PREFIX/writers/ID                   the fence of a process that writes
    PREFIX/election/leader              who leads

A batch is one transaction, so all its objects share one revision of etcd's. Ours tell them apart:
revision = (etcd's revision + line) × 128 + place, where 0 is the one delete that a batch may hold and 127 means all
of it.

An etcd that is put back to a snapshot uses revisions once more, for other changes. Whoever notices begins a line, past
everything that readers got before: so no watch and no write that knows the lost changes goes on with the present ones.
"""

from __future__ import annotations

from typing import Final, Generic, NamedTuple, TypeVar

from google.protobuf.message import Message
from msgspec.structs import replace

from j10ce.daemon.strays import Strays
from j10ce.model.kinds import Object
from j10ce.model.stored import Key, Unreadable
from j10ce.store.etcd.proto import etcd_pb2 as pb
from j10ce.store.reading import read_stored

PLACES: Final = 128
DELETE_PLACE: Final = 0


class Numbering(NamedTuple):
    """How etcd's revisions become ours."""

    past: int = 0
    since: int = 0  # etcd's revision from which on this holds

    def revision(self, main: int, place: int) -> int:
        return (main + self.past) * PLACES + place

    def whole(self, main: int) -> int:
        """The revision that stands for everything up to and with etcd's revision `main`."""
        return self.revision(main, PLACES - 1)

    def main(self, revision: int) -> int:
        """etcd's own."""
        return revision // PLACES - self.past

    def restored(self, key: Key, kv: pb.KeyValue, strays: Strays) -> Object:
        """The object in a key; raises Unreadable."""
        obj = read_stored(key, kv.value, strays)
        return at_revision(obj, self.revision(kv.mod_revision, _place(key, obj)))


class Keyspace:
    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.mark = f"{prefix}/objects".encode()
        self.line = f"{prefix}/objects-line".encode()  # between the mark and the objects: "-" precedes "/"
        self.objects = f"{prefix}/objects/".encode()
        self.end = f"{prefix}/objects0".encode()  # behind the mark, the line and all objects: "0" follows "/"
        self.leader = f"{prefix}/election/leader".encode()

    def writer(self, name: str) -> bytes:
        return f"{self.prefix}/writers/{name}".encode()

    def path(self, key: Key) -> bytes:
        return self.objects + "/".join(key).encode()

    def key(self, path: bytes) -> Key:
        """Of what is no object's path: a key that no object has."""
        kind, _, rest = path.removeprefix(self.objects).decode(errors="replace").partition("/")
        namespace, _, name = rest.partition("/")
        return Key(kind, namespace, name)


Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=Message)


class Method(NamedTuple, Generic[Q, A]):
    path: str
    request: type[Q]
    answer: type[A]


RANGE: Final = Method("/etcdserverpb.KV/Range", pb.RangeRequest, pb.RangeResponse)
PUT: Final = Method("/etcdserverpb.KV/Put", pb.PutRequest, pb.Nothing)
DELETE: Final = Method("/etcdserverpb.KV/DeleteRange", pb.DeleteRangeRequest, pb.Nothing)
TXN: Final = Method("/etcdserverpb.KV/Txn", pb.TxnRequest, pb.TxnResponse)
COMPACT: Final = Method("/etcdserverpb.KV/Compact", pb.CompactionRequest, pb.Nothing)
STATUS: Final = Method("/etcdserverpb.Maintenance/Status", pb.Nothing, pb.StatusResponse)
WATCH: Final = Method("/etcdserverpb.Watch/Watch", pb.WatchRequest, pb.WatchResponse)
GRANT: Final = Method("/etcdserverpb.Lease/LeaseGrant", pb.LeaseGrantRequest, pb.LeaseResponse)
REVOKE: Final = Method("/etcdserverpb.Lease/LeaseRevoke", pb.LeaseRequest, pb.Nothing)
KEEP_ALIVE: Final = Method("/etcdserverpb.Lease/LeaseKeepAlive", pb.LeaseRequest, pb.LeaseResponse)
AUTHENTICATE: Final = Method("/etcdserverpb.Auth/Authenticate", pb.AuthenticateRequest, pb.AuthenticateResponse)


def changed_at(key: bytes, main: int) -> pb.Compare:
    """That a key was last changed at etcd's revision `main`; 0: that there is no such key."""
    return pb.Compare(target=pb.COMPARE_TARGET_MOD, key=key, mod_revision=main)


def read_op(key: bytes, at: int = 0) -> pb.RequestOp:
    return pb.RequestOp(request_range=pb.RangeRequest(key=key, revision=at))


def put_op(key: bytes, value: bytes, lease: int = 0) -> pb.RequestOp:
    return pb.RequestOp(request_put=pb.PutRequest(key=key, value=value, lease=lease))


def _place(key: Key, obj: Object) -> int:
    """What was written past the API may carry any revision; it was then the only change of its own."""
    place = obj.metadata.resource_version
    if not place.isdecimal() or len(place) > len(str(PLACES)) or int(place) >= PLACES:
        raise Unreadable(key, f"its resourceVersion {place[:20]!r} is no place in a batch; correct it with etcdctl")
    return int(place)


def at_revision(obj: Object, number: int) -> Object:
    return replace(obj, metadata=replace(obj.metadata, resource_version=str(number)))
