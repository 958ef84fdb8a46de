"""etcd's methods and words, and how objects lie in it. Pure.

    PREFIX/objects                      the mark: which batch of writes was the last one
    PREFIX/objects/KIND/NAMESPACE/NAME  an object as JSON; its resourceVersion is its place in the batch that wrote it
    PREFIX/writers/ID                   the fence of a process that writes
    PREFIX/election/leader              who leads
    PREFIX/compaction                   who compacted last

A batch is one transaction, so all its objects share one revision of etcd's. Ours tell them apart:
revision = etcd's revision × 128 + place, where 0 is the one delete that a batch may hold and 127 means all of it.
"""

from __future__ import annotations

from typing import Final, Generic, NamedTuple, TypeVar

import msgspec
from google.protobuf.message import Message
from msgspec import Struct
from msgspec.structs import replace

from j10ce.errors import Invalid, StoreError
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Object
from j10ce.model.schema import parse
from j10ce.store.proto import etcd_pb2 as pb
from j10ce.store.revise import Key

PLACES: Final = 128
DELETE_PLACE: Final = 0


def revision(main: int, place: int) -> int:
    return main * PLACES + place


def whole(main: int) -> int:
    """The revision that stands for everything up to and with etcd's revision `main`."""
    return revision(main, PLACES - 1)


class Layout:
    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.mark = f"{prefix}/objects".encode()
        self.objects = f"{prefix}/objects/".encode()
        self.end = f"{prefix}/objects0".encode()  # behind the mark and all objects: "0" follows "/"
        self.leader = f"{prefix}/election/leader".encode()
        self.compaction = f"{prefix}/compaction".encode()

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


def restored(kv: pb.KeyValue) -> Object:
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
