"""What a node says about itself in its annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType, field

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.annotations.texts import Reading, cpus, path_of, struct, structs
from j10ce.dialects.koordinator.config.fields import LEAST_RATIO, MOST_RATIO
from j10ce.dialects.koordinator.config.qos_rules import quantity
from j10ce.errors import Finding
from j10ce.model.bounds import Named, Word
from j10ce.model.knob import parse_cpus
from j10ce.model.parts.strict import Strict
from j10ce.model.quantity import Quantity

Id = Annotated[int, Meta(ge=0, le=2**31)]


class NodeReservation(Strict, frozen=True, kw_only=True):
    """What the machine itself keeps; CPUs that are named beat a number of them."""

    resources: Named[Quantity] = field(default_factory=dict)
    reserved_cpus: Word = field(name="reservedCPUs", default="")
    apply_policy: Literal["", "Default", "ReservedCPUsOnly"] = ""

    @property
    def cpus(self) -> frozenset[int]:
        return parse_cpus(self.reserved_cpus)

    def milli(self) -> int:
        """Thousandths of a CPU."""
        if self.reserved_cpus:
            return len(self.cpus) * 1000
        return self.resources["cpu"].millicores() if "cpu" in self.resources else 0

    def memory(self) -> int:
        return self.resources["memory"].bytes() if "memory" in self.resources else 0


class SystemResource(Strict, frozen=True, kw_only=True):
    """CPUs of class SYSTEM."""

    cpuset: Word = ""
    cpuset_exclusive: bool = True


class CpuBasicInfo(Strict, frozen=True, kw_only=True):
    cpu_model: Word = ""
    hyper_thread_enabled: bool = False
    turbo_enabled: bool = False
    cat_l3_cbm_mask: Word = field(name="catL3CbmMask", default="")
    vendor_id: Word = field(name="vendorID", default="")


class LogicalCpu(Strict, frozen=True, kw_only=True):
    id: Id
    core: Id
    socket: Id = 0
    node: Id = 0


class CpuTopology(Strict, frozen=True, kw_only=True):
    detail: Annotated[tuple[LogicalCpu, ...], Meta(max_length=8192)] = ()


class PodCpus(Strict, frozen=True, kw_only=True):
    namespace: Word = ""
    name: Word = ""
    uid: Word = ""
    cpuset: Word = ""
    managed_by_kubelet: bool = False


class SharePool(Strict, frozen=True, kw_only=True):
    socket: Id = 0
    node: Id = 0
    cpuset: Word = ""


class KubeletPolicy(Strict, frozen=True, kw_only=True):
    policy: Literal["", "none", "static"] = ""
    options: Named[Word] = field(default_factory=dict)
    reserved_cpus: Word | UnsetType = field(name="reservedCPUs", default=UNSET)


class NodeSays(NamedTuple):
    reservation: NodeReservation | None = None
    system: SystemResource | None = None
    bandwidth: Quantity | None = None  # bits per second
    ratio: float | None = None  # of CPU normalisation
    cpu: CpuBasicInfo | None = None
    topology: CpuTopology | None = None
    pods: tuple[PodCpus, ...] | None = None
    pools: tuple[SharePool, ...] | None = None
    be_pools: tuple[SharePool, ...] | None = None
    kubelet: KubeletPolicy | None = None


def read_node(annotations: Mapping[str, str]) -> tuple[NodeSays, list[Finding]]:
    """All that a node says, and all that is wrong with it; its colocation strategy is a layer of the ConfigMap."""
    readings: dict[str, Reading[Any]] = {
        "reservation": struct(
            annotations, names.RESERVATION, NodeReservation, lambda r: cpus("reservedCPUs", r.reserved_cpus)
        ),
        "system": struct(annotations, names.SYSTEM_QOS, SystemResource, lambda r: cpus("cpuset", r.cpuset)),
        "bandwidth": _bandwidth(annotations),
        "ratio": _ratio(annotations),
        "cpu": struct(annotations, names.CPU_BASIC_INFO, CpuBasicInfo),
        "topology": struct(annotations, names.CPU_TOPOLOGY, CpuTopology, _topology),
        "pods": _with_cpus(structs(annotations, names.POD_CPU_ALLOCS, PodCpus), names.POD_CPU_ALLOCS),
        "pools": _with_cpus(structs(annotations, names.CPU_SHARED_POOLS, SharePool), names.CPU_SHARED_POOLS),
        "be_pools": _with_cpus(structs(annotations, names.BE_CPU_SHARED_POOLS, SharePool), names.BE_CPU_SHARED_POOLS),
        "kubelet": struct(annotations, names.CPU_MANAGER_POLICY, KubeletPolicy, _kubelet),
    }
    findings = [finding for reading in readings.values() for finding in reading.findings]
    return NodeSays(**{name: reading.value for name, reading in readings.items()}), findings


def _bandwidth(annotations: Mapping[str, str]) -> Reading[Quantity]:
    text = annotations.get(names.NETWORK_BANDWIDTH)
    value = quantity(text) if text is not None else None
    wrong = Finding(path_of(names.NETWORK_BANDWIDTH), text, "not a quantity", "write bits per second, such as 10G")
    return Reading(value, [wrong] if text is not None and value is None else [])


LONGEST_RATIO: Final = 20  # characters


def _ratio(annotations: Mapping[str, str]) -> Reading[float]:
    text = annotations.get(names.NORMALIZATION_RATIO)
    if text is None:
        return Reading(None, [])
    plain = text.isascii() and len(text) <= LONGEST_RATIO and text.replace(".", "", 1).isdecimal()
    value = float(text) if plain else None
    if value is not None and LEAST_RATIO <= value <= MOST_RATIO:
        return Reading(value, [])
    hint = f"use {LEAST_RATIO:.2f} to {MOST_RATIO:.2f}"
    return Reading(None, [Finding(path_of(names.NORMALIZATION_RATIO), text, "out of range", hint)])


def _topology(topology: CpuTopology) -> Iterator[Finding]:
    ids = [processor.id for processor in topology.detail]
    if len({*ids}) != len(ids):
        yield Finding("detail", None, "a CPU stands twice", "let its writer correct it")


def _kubelet(policy: KubeletPolicy) -> list[Finding]:
    return cpus("reservedCPUs", policy.reserved_cpus) if policy.reserved_cpus is not UNSET else []


def _with_cpus(reading: Reading[tuple[Any, ...]], key: str) -> Reading[tuple[Any, ...]]:
    wrong = [
        finding
        for n, item in enumerate(reading.value or ())
        for finding in cpus(f"{path_of(key)}[{n}].cpuset", item.cpuset)
    ]
    return Reading(None if wrong else reading.value, reading.findings + wrong)
