"""Kinds as an API server serves them: their paths, and its JSON made into objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec
import structlog
from msgspec import UNSET, Struct, UnsetType, defstruct, field
from msgspec.structs import asdict, fields

from j10ce.daemon.strays import Strays
from j10ce.errors import Finding, Invalid
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.kinds import API_VERSION, Credential, Meta, Object, Owner, Workload
from j10ce.model.kube.native import Lease, Namespace, NativeEvent, NativeObject, Node, Pool, decode_native, slim
from j10ce.model.kube.pod import Pod, slim_pod
from j10ce.model.schema import parse
from j10ce.model.stored import Key, Unreadable

ELSEWHERE: Final = (Workload, Credential)  # pods are workloads there, and Kubernetes knows its users
Read = Callable[[bytes], Any]
N = TypeVar("N", bound=NativeObject)
log = structlog.get_logger()


class Resource:
    """One kind. `unread` are the objects that exist and cannot be read: left out, logged once, and counted."""

    def __init__(self, kind: str, prefix: str, plural: str, read: Read, *, namespaced: bool) -> None:
        self.kind = kind
        self.unread: set[Key] = set()
        self._prefix, self._plural, self._namespaced = prefix, plural, namespaced
        self._read = read

    def collection(self, namespace: str | None = None) -> str:
        scope = f"/namespaces/{quote(namespace, safe='')}" if namespace and self._namespaced else ""
        return f"{self._prefix}{scope}/{self._plural}"

    def path(self, namespace: str, name: str) -> str:
        return f"{self.collection(namespace)}/{quote(name, safe='')}"

    def read(self, text: bytes | msgspec.Raw) -> Any:
        """Raises Unreadable."""
        try:
            return self._read(bytes(text))
        except (Invalid, msgspec.MsgspecError) as e:
            raise Unreadable(_key(self.kind, bytes(text)), str(e)) from None

    def readable(self, texts: Iterable[msgspec.Raw]) -> list[Any]:
        """Those of a whole listing that make sense."""
        unread: set[Key] = set()
        readable = self.page(texts, unread)
        self.unread &= unread
        return readable

    def page(self, texts: Iterable[msgspec.Raw], unread: set[Key]) -> list[Any]:
        """Those of a part of a listing that make sense; the others are added to `unread`."""
        objects = []
        for text in texts:
            try:
                objects.append(self.read(text))
            except Unreadable as e:
                self.skip(e)
                unread.add(e.key)
        return objects

    def skip(self, e: Unreadable, *, gone: bool = False) -> None:
        if e.key not in self.unread:
            log.error("object.skip", kind=self.kind, error=str(e))
        self.unread.add(e.key)
        if gone:
            self.unread.discard(e.key)


def resources() -> dict[str, Resource]:
    """Ours that have CRDs, and Kubernetes' own that we read; equal parts of these are shared among them."""
    pool = Pool()
    ours = [
        Resource(kind.name, f"/apis/{API_VERSION}", kind.plural, ObjectReader(kind), namespaced=kind.namespaced)
        for kind in KINDS.values()
        if kind.struct not in ELSEWHERE
    ]
    natives = [
        Resource("Pod", "/api/v1", "pods", lambda text: slim_pod(decode_native(text, Pod), pool), namespaced=True),
        _native(Node, "/api/v1", "nodes", pool, namespaced=False),
        _native(Namespace, "/api/v1", "namespaces", pool, namespaced=False),
        _native(NativeEvent, "/api/v1", "events", pool, namespaced=True),
        _native(Lease, "/apis/coordination.k8s.io/v1", "leases", pool, namespaced=True),
    ]
    return {resource.kind: resource for resource in (*ours, *natives)}


def _native(into: type[N], prefix: str, plural: str, pool: Pool, *, namespaced: bool) -> Resource:
    return Resource(
        into().kind, prefix, plural, lambda text: slim(decode_native(text, into), pool), namespaced=namespaced
    )


class LooseMeta(Struct, frozen=True, kw_only=True, rename="camel"):
    """What we keep of an object's metadata; an API server writes more into it."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | UnsetType = UNSET
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[Owner, ...] = ()


class ObjectReader:
    """Objects of one of our kinds. Fields of a later release are left out: a promise is not broken for a new word."""

    def __init__(self, kind: Kind) -> None:
        self._kind, self._loose = kind, _loose(kind.struct)
        self._strays = Strays()

    def __call__(self, text: bytes) -> Object:
        strays: list[Finding] = []
        loose = parse(text, self._loose, strays)
        self._strays.tell(self._kind.name, strays)
        parts: Mapping[str, Any] = {name: getattr(loose, name) for name in loose.__struct_fields__}
        return self._kind.struct(**{**parts, "metadata": Meta(**asdict(parts["metadata"]))})  # type: ignore[return-value]


def _loose(struct: type[Struct]) -> type[Struct]:
    """The same shape with metadata as an API server writes it."""
    shape = []
    for f in fields(struct):
        if f.name not in ("api_version", "kind"):
            kind = LooseMeta if f.name == "metadata" else f.type
            shape.append((f.name, kind) if f.required else (f.name, kind, f.default))
    return defstruct(struct.__name__, shape, kw_only=True, rename="camel")


class _Named(Struct):
    metadata: LooseMeta = LooseMeta()


def _key(kind: str, text: bytes) -> Key:
    try:
        meta = msgspec.json.decode(text, type=_Named).metadata
        return Key(kind, meta.namespace, meta.name)
    except msgspec.MsgspecError:
        return Key(kind, "", "?")
