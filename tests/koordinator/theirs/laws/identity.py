"""Group identity (`cpu.bvt_warp_ns`), and who shares a physical core with whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from msgspec import UNSET

from j10ce.dialects.koordinator.classes import KoordClass, Labels
from j10ce.dialects.koordinator.config.qos import CpuQos
from j10ce.dialects.koordinator.names import CORE_GROUP_LABEL, CORE_POLICY_LABEL
from j10ce.model.workload import NativeClass

CpuPolicy = Literal["groupIdentity", "coreSched"]
EXPELLER: Final = "-expeller"


class IdentityRule(NamedTuple):
    enable: bool
    pod: Mapping[KoordClass, int]
    kube_dir: Mapping[NativeClass, int]
    kube_pod: Mapping[NativeClass, int]  # of a pod without a class


def identity_rule(policy: CpuPolicy, lsr: CpuQos, ls: CpuQos, be: CpuQos) -> IdentityRule:
    """A class that is switched off counts as 0; core scheduling switches all of it off."""
    on = policy == "groupIdentity"
    values = {name: _identity(cpu) * on for name, cpu in (("lsr", lsr), ("ls", ls), ("be", be))}
    guaranteed = values["lsr"] if lsr.enable is True else values["ls"]
    return IdentityRule(
        on and any(cpu.enable is True for cpu in (lsr, ls, be)),
        {
            KoordClass.LSE: values["lsr"],
            KoordClass.LSR: values["lsr"],
            KoordClass.LS: values["ls"],
            KoordClass.BE: values["be"],
        },
        {"Guaranteed": 0, "Burstable": values["ls"], "BestEffort": values["be"]},
        {"Guaranteed": guaranteed, "Burstable": values["ls"], "BestEffort": values["be"]},
    )


def _identity(cpu: CpuQos) -> int:
    return cpu.group_identity if cpu.enable is True and cpu.group_identity is not UNSET else 0


def pod_identity(rule: IdentityRule, koord: KoordClass, native: NativeClass, wish: CpuQos | None = None) -> int:
    """Of a pod. Only an LS pod is heard; one that does not say `enable` gets 0."""
    value = rule.pod[koord] if koord in rule.pod else rule.kube_pod[native]
    if koord is not KoordClass.LS or wish is None:
        return value
    if wish.enable is not True:
        return 0
    return value if wish.group_identity is UNSET else wish.group_identity


def core_group(policy: CpuPolicy, cpu: CpuQos | None, labels: Labels, uid: str) -> str | None:
    """The group whose tasks may share a core; None: the pod has no cookie. `cpu` is the block of its class, None for
    SYSTEM, which is in no rule."""
    asked = labels.get(CORE_POLICY_LABEL, "")
    if policy != "coreSched" or cpu is None or cpu.enable is not True or asked == "none":
        return None
    group = uid if asked == "exclusive" else labels.get(CORE_GROUP_LABEL, "")
    return group + (EXPELLER if cpu.core_expeller is True else "")


def idle_values(ls: CpuQos, be: CpuQos) -> dict[NativeClass, int]:
    """cpu.idle, which is written to the directories of Kubernetes' classes alone."""
    return {"Burstable": _idle(ls), "BestEffort": _idle(be)}


def _idle(cpu: CpuQos) -> int:
    return cpu.sched_idle if cpu.enable is True and cpu.sched_idle is not UNSET else 0
