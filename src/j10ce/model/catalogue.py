"""The table of kinds: all that the API, the CLI and the docs need to know of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from j10ce.model.kinds import (
    Credential,
    Hold,
    MinimalReservationPolicy,
    NodeQoS,
    NodeStrategy,
    PolicyRevision,
    QoSProfile,
    Workload,
)


class Column(Struct, frozen=True):
    """One column of a listing: its heading and the path of its value; `wide` ones show only with -o wide.

    A step into a list of conditions is a type: `status.conditions.Ready.status`.
    `default` is what an absent value means: objects travel without their defaults.
    `resource`: the value is an amount of it, shown as people read amounts. `kept` is the path of the floors that are
    really kept; where less than the value is, both are shown: `0/256Mi`.
    """

    name: str
    path: str
    wide: bool = False
    default: str = ""
    resource: str = ""
    kept: str = ""


class Kind(Struct, frozen=True):
    """All that the API, the CLI and the docs need to know of a kind."""

    name: str
    plural: str
    struct: type[Struct]
    namespaced: bool
    short: tuple[str, ...] = ()
    stored: bool = True
    columns: tuple[Column, ...] = ()


_KINDS: Final = (
    Kind("QoSProfile", "qosprofiles", QoSProfile, False, ("qp", "qos"), columns=(
        Column("TIER", "spec.tier"), Column("PRIORITY", "spec.priority", default="0"),
        Column("READY", "status.conditions.Ready.status", default="Unknown"),
        Column("REASON", "status.conditions.Ready.reason", wide=True),
        Column("PINNING", "spec.cpu.pinning", wide=True, default="none"),
        Column("IDLE", "spec.cpu.idle", wide=True, default="no"),
        Column("NODES", "status.nodes.applied", wide=True, default="0"),
        Column("FAILING", "status.nodes.failing", wide=True, default="0"))),
    Kind("MinimalReservationPolicy", "minimalreservationpolicies", MinimalReservationPolicy, True, ("mrp",), columns=(
        Column("PHASE", "status.phase", default="Pending"), Column("CPU", "spec.minimum.cpu", resource="cpu"),
        Column("MEMORY", "spec.minimum.memory", resource="memory"),
        Column("NETWORK", "spec.minimum.network", wide=True, resource="network"),
        Column("UNITS", "spec.units", default="0"),
        Column("READY", "status.conditions.Ready.status", default="Unknown"),
        Column("REASON", "status.conditions.Ready.reason"),
        Column("PLACED", "status.units.placed", wide=True, default="0"),
        Column("USED", "status.units.used", wide=True, default="0"),
        Column("ADMITTED", "status.conditions.Admitted.status", wide=True, default="Unknown"),
        Column("FAILING", "status.nodes.failing", wide=True, default="0"),
        Column("TTL", "spec.ttl", wide=True))),
    Kind("NodeStrategy", "nodestrategies", NodeStrategy, False, ("nst",), columns=(
        Column("PRIORITY", "spec.priority", default="0"),
        Column("READY", "status.conditions.Ready.status", default="Unknown"),
        Column("NODES", "status.nodes.applied", default="0"),
        Column("REASON", "status.conditions.Ready.reason", wide=True),
        Column("SUPPRESS", "spec.suppress.mode", wide=True), Column("BURST", "spec.burst.policy", wide=True),
        Column("EVICTION", "spec.eviction.mode", wide=True),
        Column("FAILING", "status.nodes.failing", wide=True, default="0"))),
    Kind("NodeQoS", "nodeqoses", NodeQoS, False, ("nq",), columns=(
        Column("READY", "status.conditions.Ready.status", default="Unknown"),
        Column("CORDONED", "spec.unschedulable", default="no"),
        Column("ARMED", "status.node.armed", default="no"), Column("WORKLOADS", "status.node.workloads", default="0"),
        Column("CPU", "status.node.capacity.cpu", resource="cpu"),
        Column("MEMORY", "status.node.capacity.memory", resource="memory"),
        Column("RESERVED-CPU", "status.node.reserved.cpu", wide=True, default="0", resource="cpu"),
        Column("RESERVED-MEM", "status.node.reserved.memory", wide=True, default="0", resource="memory"),
        Column("BATCH-CPU", "status.overcommit.batch-cpu", wide=True, resource="cpu"),
        Column("BATCH-MEM", "status.overcommit.batch-memory", wide=True, resource="memory"),
        Column("HEARTBEAT", "status.node.heartbeat", wide=True))),
    Kind("Hold", "holds", Hold, True, ("qh",), columns=(
        Column("TARGET", "spec.target"), Column("KNOBS", "spec.knobs"), Column("EXPIRES", "spec.expires"),
        Column("WHO", "spec.who", wide=True), Column("WHY", "spec.why"))),
    Kind("Workload", "workloads", Workload, True, ("wl",), stored=False, columns=(
        Column("PROFILE", "status.profile"), Column("TIER", "status.tier", wide=True),
        Column("PHASE", "status.phase", default="Pending"),
        Column("CPU", "status.usage.cpu", resource="cpu"), Column("MEMORY", "status.usage.memory", resource="memory"),
        Column("FLOOR-CPU", "status.floor.cpu", resource="cpu", kept="status.effective"),
        Column("FLOOR-MEM", "status.floor.memory", resource="memory", kept="status.effective"),
        Column("NET-OUT", "status.usage.egress", wide=True, resource="network"),
        Column("NET-IN", "status.usage.ingress", wide=True, resource="network"),
        Column("FLOOR-NET", "status.floor.network", wide=True, resource="network", kept="status.effective"),
        Column("DISK-READ", "status.usage.diskRead", wide=True, resource="diskRead"),
        Column("FLOOR-READ", "status.floor.diskRead", wide=True, resource="diskRead", kept="status.effective"),
        Column("DISK-WRITE", "status.usage.diskWrite", wide=True, resource="diskWrite"),
        Column("FLOOR-WRITE", "status.floor.diskWrite", wide=True, resource="diskWrite", kept="status.effective"),
        Column("CGROUP", "status.cgroup", wide=True))),
    Kind("PolicyRevision", "policyrevisions", PolicyRevision, True, ("polrev",), columns=(
        Column("REVISION", "revision"),)),
    Kind("Credential", "credentials", Credential, False, ("cred",), columns=(
        Column("ROLE", "spec.role"), Column("NODE", "spec.node"), Column("EXPIRES", "spec.expires"),
        Column("USES", "spec.uses"))),
)  # fmt: skip

KINDS: Final[Mapping[str, Kind]] = {k.name: k for k in _KINDS}
