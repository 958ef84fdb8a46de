"""koordlet's feature gates, as controllers of ours that are on and off.

A gate that is not said leaves its controllers as they are here. A controller that stands for several gates is off where
none of those that are said is on. A gate that switches nothing here is known, and says what does its work, or that
nothing does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from j10ce.errors import Finding

PATH: Final = "koordletFeatureGates"
NO_DEVICES: Final = "devices are not looked at"
NO_CLASS_RATES: Final = "no class has a rate together; a pod's own is heeded"
NO_HOOKS: Final = "there are no runtime hooks"
TRUTH: Final = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


class FeatureGate(NamedTuple):
    controllers: tuple[str, ...] = ()  # of ours that do its work
    on: bool = False  # there, when nothing is said
    instead: str = ""  # where no controller of ours stands for it


GATES: Final[Mapping[str, FeatureGate]] = {
    "BECPUSuppress": FeatureGate(("cpu-suppress",), on=True),
    "BECPUManager": FeatureGate(instead="CPUs of best effort follow from who has CPUs of its own"),
    "BECPUEvict": FeatureGate(("eviction",)),
    "CPUEvict": FeatureGate(("eviction",)),
    "CPUAllocatableEvict": FeatureGate(("eviction",)),
    "BEMemoryEvict": FeatureGate(("eviction",)),
    "MemoryEvict": FeatureGate(("eviction",)),
    "MemoryAllocatableEvict": FeatureGate(("eviction",)),
    "CPUBurst": FeatureGate(("cpu-burst",), on=True),
    "SystemConfig": FeatureGate(("parameters",)),
    "RdtResctrl": FeatureGate(("cache",), on=True),
    "CgroupReconcile": FeatureGate(("memory-qos", "memory-reclaim")),
    "GroupIdentity": FeatureGate(("cpu-idle",), on=True),
    "CoreSched": FeatureGate(("core-sched",)),
    "OOMScoreAdj": FeatureGate(("oom-order",)),
    "CPICollector": FeatureGate(("interference",)),
    "PSICollector": FeatureGate(("interference",)),
    "BatchResource": FeatureGate(("lent",), on=True),
    "CPUSetAllocator": FeatureGate(on=True, instead="profiles say who has CPUs of its own"),
    "CPUNormalization": FeatureGate(instead="normalization.ratio of the node's strategy"),
    "Resctrl": FeatureGate(("cache",)),
    "NodeMetricPromMetrics": FeatureGate(instead="koordletMetrics of the agent's configuration"),
    "NodeTopologyReport": FeatureGate(on=True, instead="the topology is in every NodeQoS"),
    "AuditEvents": FeatureGate(instead="the journal and `explain`"),
    "AuditEventsHTTPHandler": FeatureGate(instead="`j10ce-qos explain`"),
    "BlkIOReconcile": FeatureGate(instead="the section `io` of profiles; `blkioQOS` is not translated"),
    "ColdPageCollector": FeatureGate(instead="refaults tell what is cold"),
    "HugePageReport": FeatureGate(instead="huge pages are not reported"),
    "PerCPUMetric": FeatureGate(instead="CPUs are measured together"),
    "ResctrlCollector": FeatureGate(instead="groups of resctrl are measured where the CPU counts"),
    "Libpfm4": FeatureGate(instead="the kernel's own names of counters"),
    "Accelerators": FeatureGate(instead=NO_DEVICES),
    "RDMADevices": FeatureGate(instead=NO_DEVICES),
    "HamiCoreVGPUMonitor": FeatureGate(instead=NO_DEVICES),
    "PodResourcesProxy": FeatureGate(instead=NO_DEVICES),
    "GPUEnvInject": FeatureGate(instead=NO_HOOKS),
    "RDMADeviceInject": FeatureGate(instead=NO_HOOKS),
    "TerwayQoS": FeatureGate(instead=NO_CLASS_RATES),
    "TCNetworkQoS": FeatureGate(instead=NO_CLASS_RATES),
}


class Switched(NamedTuple):
    """What gates make of our controllers."""

    off: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # gates that are on and switch nothing here
    findings: tuple[Finding, ...] = ()


def switched(text: str) -> Switched:
    """Of the text of koordlet's `--feature-gates`: `BECPUSuppress=true,CPUBurst=false`."""
    said, findings = _read(text)
    asked = [(c, on) for name, on in said.items() for c in GATES[name].controllers]
    on = {c for c, wanted in asked if wanted}
    off = sorted({c for c, wanted in asked if not wanted} - on)
    notes = [f"{name}: {GATES[name].instead}" for name, wanted in said.items() if wanted and GATES[name].instead]
    return Switched(tuple(off), tuple(notes), tuple(findings))


def _read(text: str) -> tuple[dict[str, bool], list[Finding]]:
    """The last word counts, as there."""
    said: dict[str, bool] = {}
    findings = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (word.strip() for word in entry.partition("="))
        if name not in GATES:
            findings.append(Finding(PATH, name, "no gate of koordlet", "see docs/koordinator.md#feature-gates"))
        elif not equals or value.lower() not in TRUTH:
            findings.append(Finding(PATH, entry, "no truth value", f"write {name}=true or {name}=false"))
        else:
            said[name] = TRUTH[value.lower()]
    return said, findings
