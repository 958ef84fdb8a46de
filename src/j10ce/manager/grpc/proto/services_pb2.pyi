from j10ce.manager.grpc.proto import objects_pb2 as _objects_pb2
from j10ce.manager.grpc.proto import requests_pb2 as _requests_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QoSProfileList(_message.Message):
    __slots__ = ("metadata", "items")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    metadata: _requests_pb2.ListMeta
    items: _containers.RepeatedCompositeFieldContainer[_objects_pb2.QoSProfile]
    def __init__(self, metadata: _Optional[_Union[_requests_pb2.ListMeta, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_objects_pb2.QoSProfile, _Mapping]]] = ...) -> None: ...

class QoSProfileEvent(_message.Message):
    __slots__ = ("type", "object", "resource_version")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    type: _requests_pb2.EventType
    object: _objects_pb2.QoSProfile
    resource_version: str
    def __init__(self, type: _Optional[_Union[_requests_pb2.EventType, str]] = ..., object: _Optional[_Union[_objects_pb2.QoSProfile, _Mapping]] = ..., resource_version: _Optional[str] = ...) -> None: ...

class CreateQoSProfileRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.QoSProfile
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.QoSProfile, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class UpdateQoSProfileRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.QoSProfile
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.QoSProfile, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class ApplyQoSProfileRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager", "force")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.QoSProfile
    dry_run: bool
    field_manager: str
    force: bool
    def __init__(self, object: _Optional[_Union[_objects_pb2.QoSProfile, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class MinimalReservationPolicyList(_message.Message):
    __slots__ = ("metadata", "items")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    metadata: _requests_pb2.ListMeta
    items: _containers.RepeatedCompositeFieldContainer[_objects_pb2.MinimalReservationPolicy]
    def __init__(self, metadata: _Optional[_Union[_requests_pb2.ListMeta, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_objects_pb2.MinimalReservationPolicy, _Mapping]]] = ...) -> None: ...

class MinimalReservationPolicyEvent(_message.Message):
    __slots__ = ("type", "object", "resource_version")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    type: _requests_pb2.EventType
    object: _objects_pb2.MinimalReservationPolicy
    resource_version: str
    def __init__(self, type: _Optional[_Union[_requests_pb2.EventType, str]] = ..., object: _Optional[_Union[_objects_pb2.MinimalReservationPolicy, _Mapping]] = ..., resource_version: _Optional[str] = ...) -> None: ...

class CreateMinimalReservationPolicyRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.MinimalReservationPolicy
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.MinimalReservationPolicy, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class UpdateMinimalReservationPolicyRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.MinimalReservationPolicy
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.MinimalReservationPolicy, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class ApplyMinimalReservationPolicyRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager", "force")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.MinimalReservationPolicy
    dry_run: bool
    field_manager: str
    force: bool
    def __init__(self, object: _Optional[_Union[_objects_pb2.MinimalReservationPolicy, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class NodeStrategyList(_message.Message):
    __slots__ = ("metadata", "items")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    metadata: _requests_pb2.ListMeta
    items: _containers.RepeatedCompositeFieldContainer[_objects_pb2.NodeStrategy]
    def __init__(self, metadata: _Optional[_Union[_requests_pb2.ListMeta, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_objects_pb2.NodeStrategy, _Mapping]]] = ...) -> None: ...

class NodeStrategyEvent(_message.Message):
    __slots__ = ("type", "object", "resource_version")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    type: _requests_pb2.EventType
    object: _objects_pb2.NodeStrategy
    resource_version: str
    def __init__(self, type: _Optional[_Union[_requests_pb2.EventType, str]] = ..., object: _Optional[_Union[_objects_pb2.NodeStrategy, _Mapping]] = ..., resource_version: _Optional[str] = ...) -> None: ...

class CreateNodeStrategyRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.NodeStrategy
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.NodeStrategy, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class UpdateNodeStrategyRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.NodeStrategy
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.NodeStrategy, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class ApplyNodeStrategyRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager", "force")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.NodeStrategy
    dry_run: bool
    field_manager: str
    force: bool
    def __init__(self, object: _Optional[_Union[_objects_pb2.NodeStrategy, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class NodeQoSList(_message.Message):
    __slots__ = ("metadata", "items")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    metadata: _requests_pb2.ListMeta
    items: _containers.RepeatedCompositeFieldContainer[_objects_pb2.NodeQoS]
    def __init__(self, metadata: _Optional[_Union[_requests_pb2.ListMeta, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_objects_pb2.NodeQoS, _Mapping]]] = ...) -> None: ...

class NodeQoSEvent(_message.Message):
    __slots__ = ("type", "object", "resource_version")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    type: _requests_pb2.EventType
    object: _objects_pb2.NodeQoS
    resource_version: str
    def __init__(self, type: _Optional[_Union[_requests_pb2.EventType, str]] = ..., object: _Optional[_Union[_objects_pb2.NodeQoS, _Mapping]] = ..., resource_version: _Optional[str] = ...) -> None: ...

class CreateNodeQoSRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.NodeQoS
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.NodeQoS, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class UpdateNodeQoSRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.NodeQoS
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.NodeQoS, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class ApplyNodeQoSRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager", "force")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.NodeQoS
    dry_run: bool
    field_manager: str
    force: bool
    def __init__(self, object: _Optional[_Union[_objects_pb2.NodeQoS, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class HoldList(_message.Message):
    __slots__ = ("metadata", "items")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    metadata: _requests_pb2.ListMeta
    items: _containers.RepeatedCompositeFieldContainer[_objects_pb2.Hold]
    def __init__(self, metadata: _Optional[_Union[_requests_pb2.ListMeta, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_objects_pb2.Hold, _Mapping]]] = ...) -> None: ...

class HoldEvent(_message.Message):
    __slots__ = ("type", "object", "resource_version")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    type: _requests_pb2.EventType
    object: _objects_pb2.Hold
    resource_version: str
    def __init__(self, type: _Optional[_Union[_requests_pb2.EventType, str]] = ..., object: _Optional[_Union[_objects_pb2.Hold, _Mapping]] = ..., resource_version: _Optional[str] = ...) -> None: ...

class CreateHoldRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.Hold
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.Hold, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class UpdateHoldRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.Hold
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.Hold, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class ApplyHoldRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager", "force")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.Hold
    dry_run: bool
    field_manager: str
    force: bool
    def __init__(self, object: _Optional[_Union[_objects_pb2.Hold, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class PolicyRevisionList(_message.Message):
    __slots__ = ("metadata", "items")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    metadata: _requests_pb2.ListMeta
    items: _containers.RepeatedCompositeFieldContainer[_objects_pb2.PolicyRevision]
    def __init__(self, metadata: _Optional[_Union[_requests_pb2.ListMeta, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_objects_pb2.PolicyRevision, _Mapping]]] = ...) -> None: ...

class PolicyRevisionEvent(_message.Message):
    __slots__ = ("type", "object", "resource_version")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    type: _requests_pb2.EventType
    object: _objects_pb2.PolicyRevision
    resource_version: str
    def __init__(self, type: _Optional[_Union[_requests_pb2.EventType, str]] = ..., object: _Optional[_Union[_objects_pb2.PolicyRevision, _Mapping]] = ..., resource_version: _Optional[str] = ...) -> None: ...

class CreatePolicyRevisionRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.PolicyRevision
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.PolicyRevision, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class UpdatePolicyRevisionRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.PolicyRevision
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.PolicyRevision, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class ApplyPolicyRevisionRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager", "force")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.PolicyRevision
    dry_run: bool
    field_manager: str
    force: bool
    def __init__(self, object: _Optional[_Union[_objects_pb2.PolicyRevision, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class CredentialList(_message.Message):
    __slots__ = ("metadata", "items")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    metadata: _requests_pb2.ListMeta
    items: _containers.RepeatedCompositeFieldContainer[_objects_pb2.Credential]
    def __init__(self, metadata: _Optional[_Union[_requests_pb2.ListMeta, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_objects_pb2.Credential, _Mapping]]] = ...) -> None: ...

class CredentialEvent(_message.Message):
    __slots__ = ("type", "object", "resource_version")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    type: _requests_pb2.EventType
    object: _objects_pb2.Credential
    resource_version: str
    def __init__(self, type: _Optional[_Union[_requests_pb2.EventType, str]] = ..., object: _Optional[_Union[_objects_pb2.Credential, _Mapping]] = ..., resource_version: _Optional[str] = ...) -> None: ...

class CreateCredentialRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.Credential
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.Credential, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class UpdateCredentialRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.Credential
    dry_run: bool
    field_manager: str
    def __init__(self, object: _Optional[_Union[_objects_pb2.Credential, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ...) -> None: ...

class ApplyCredentialRequest(_message.Message):
    __slots__ = ("object", "dry_run", "field_manager", "force")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.Credential
    dry_run: bool
    field_manager: str
    force: bool
    def __init__(self, object: _Optional[_Union[_objects_pb2.Credential, _Mapping]] = ..., dry_run: _Optional[bool] = ..., field_manager: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...
