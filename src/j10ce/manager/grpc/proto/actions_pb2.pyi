from j10ce.manager.grpc.proto import objects_pb2 as _objects_pb2
from j10ce.manager.grpc.proto import requests_pb2 as _requests_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PlaceRequest(_message.Message):
    __slots__ = ("workload", "dry_run", "hold_for", "allow_unenforced")
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    HOLD_FOR_FIELD_NUMBER: _ClassVar[int]
    ALLOW_UNENFORCED_FIELD_NUMBER: _ClassVar[int]
    workload: _objects_pb2.Workload
    dry_run: bool
    hold_for: str
    allow_unenforced: bool
    def __init__(self, workload: _Optional[_Union[_objects_pb2.Workload, _Mapping]] = ..., dry_run: _Optional[bool] = ..., hold_for: _Optional[str] = ..., allow_unenforced: _Optional[bool] = ...) -> None: ...

class IssueNodeCredentialRequest(_message.Message):
    __slots__ = ("node", "lifetime")
    NODE_FIELD_NUMBER: _ClassVar[int]
    LIFETIME_FIELD_NUMBER: _ClassVar[int]
    node: str
    lifetime: str
    def __init__(self, node: _Optional[str] = ..., lifetime: _Optional[str] = ...) -> None: ...

class GetNodeCredentialRequest(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: str
    def __init__(self, node: _Optional[str] = ...) -> None: ...

class GetNodeDocumentRequest(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: str
    def __init__(self, node: _Optional[str] = ...) -> None: ...

class WatchNodeDocumentRequest(_message.Message):
    __slots__ = ("node", "hash")
    NODE_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    node: str
    hash: str
    def __init__(self, node: _Optional[str] = ..., hash: _Optional[str] = ...) -> None: ...

class NodeDocumentEvent(_message.Message):
    __slots__ = ("type", "document", "hash")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    type: _requests_pb2.EventType
    document: _objects_pb2.NodeDocument
    hash: str
    def __init__(self, type: _Optional[_Union[_requests_pb2.EventType, str]] = ..., document: _Optional[_Union[_objects_pb2.NodeDocument, _Mapping]] = ..., hash: _Optional[str] = ...) -> None: ...

class WorkloadList(_message.Message):
    __slots__ = ("metadata", "items")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    metadata: _requests_pb2.ListMeta
    items: _containers.RepeatedCompositeFieldContainer[_objects_pb2.Workload]
    def __init__(self, metadata: _Optional[_Union[_requests_pb2.ListMeta, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_objects_pb2.Workload, _Mapping]]] = ...) -> None: ...
