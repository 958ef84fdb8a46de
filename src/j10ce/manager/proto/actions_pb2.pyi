from j10ce.manager.proto import objects_pb2 as _objects_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
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
