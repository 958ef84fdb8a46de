"""A pod with all that decides where it may run: for a scheduler, which reads it once and keeps facts of its own.

Parts that many pods write alike stay text here. Who reads them remembers what each text means.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Raw, field

from j10ce.model.kube.native import Amounts, Native, NativeMeta, NativeObject, read_amount, without_nulls
from j10ce.model.kube.pod import Container, ContainerState, PodResources, PodSpec

NO_TEXT: Final = Raw(b"")
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)


class ContainerPort(Native, frozen=True, kw_only=True):
    container_port: int = 0
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = field(default="", name="hostIP")


class WideContainer(Container, frozen=True, kw_only=True):
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()


class SchedulingGate(Native, frozen=True, kw_only=True):
    name: str


class WidePodSpec(PodSpec, frozen=True, kw_only=True):
    containers: tuple[WideContainer, ...] = ()
    init_containers: tuple[WideContainer, ...] = ()
    preemption_policy: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    tolerations: Raw = NO_TEXT
    affinity: Raw = NO_TEXT
    topology_spread_constraints: Raw = NO_TEXT
    volumes: Raw = NO_TEXT
    resource_claims: Raw = NO_TEXT


class WideContainerStatus(Native, frozen=True, kw_only=True):
    name: str = ""
    state: ContainerState = ContainerState()
    resources: PodResources | None = None  # in force
    allocated_resources: Amounts = field(default_factory=dict)


class WidePodStatus(Native, frozen=True, kw_only=True):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: datetime | None = None
    container_statuses: tuple[WideContainerStatus, ...] = ()
    init_container_statuses: tuple[WideContainerStatus, ...] = ()


class WideMeta(NativeMeta, frozen=True, kw_only=True):
    deletion_grace_period_seconds: int = 0


class WidePod(NativeObject, frozen=True, kw_only=True):
    metadata: WideMeta = WideMeta()
    spec: Raw = NO_TEXT
    status: Raw = NO_TEXT


def decode_part(text: Raw | bytes, into: Any) -> Any:
    """A null is what is left out, as Go writes it. Raises one of `UNREADABLE` for what is none of `into`."""
    try:
        return msgspec.json.decode(text, type=into, dec_hook=read_amount)
    except msgspec.ValidationError:
        plain = without_nulls(msgspec.json.decode(text))
        return msgspec.json.decode(msgspec.json.encode(plain), type=into, dec_hook=read_amount)


def is_nothing(text: Raw) -> bool:
    return bytes(text) in (b"", b"null")
