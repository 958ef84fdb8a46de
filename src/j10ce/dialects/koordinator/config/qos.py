"""`resource-qos-config`: what each class means for CPU, memory, cache, disk and network."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field

from j10ce.dialects.koordinator.config.fields import Flag, NotNegative, Percent, Plain, Switch
from j10ce.model.bounds import Several, Word
from j10ce.model.parts.strict import Strict


class CpuQos(Strict, frozen=True, kw_only=True):
    enable: Flag = UNSET
    group_identity: Annotated[int, Meta(ge=-1, le=2)] | UnsetType = UNSET
    sched_idle: Switch = UNSET
    core_expeller: Flag = UNSET


class MemoryFields(Strict, frozen=True, kw_only=True):
    """What a class block and a pod's annotation may both say."""

    min_limit_percent: Percent = UNSET
    low_limit_percent: Percent = UNSET
    throttling_percent: Percent = UNSET
    wmark_ratio: Percent = UNSET
    wmark_scale_permill: Annotated[int, Meta(ge=1, le=1000)] | UnsetType = UNSET
    wmark_min_adj: Annotated[int, Meta(ge=-25, le=50)] | UnsetType = UNSET
    priority_enable: Switch = UNSET
    priority: Annotated[int, Meta(ge=0, le=12)] | UnsetType = UNSET
    oom_kill_group: Switch = UNSET
    page_cache_enable: Flag = UNSET
    page_cache_limit_percent: Percent = UNSET
    page_cache_limit_size: NotNegative = UNSET  # bytes
    page_cache_reclaim_sync: Flag = UNSET


class MemoryBlock(MemoryFields, frozen=True, kw_only=True):
    enable: Flag = UNSET


class ResctrlQos(Strict, frozen=True, kw_only=True):
    enable: Flag = UNSET
    cat_range_start_percent: Percent = UNSET
    cat_range_end_percent: Percent = UNSET
    mba_percent: Percent = UNSET


class IoConfig(Strict, frozen=True, kw_only=True):
    read_iops: NotNegative = field(name="readIOPS", default=UNSET)
    write_iops: NotNegative = field(name="writeIOPS", default=UNSET)
    read_bps: NotNegative = field(name="readBPS", default=UNSET)
    write_bps: NotNegative = field(name="writeBPS", default=UNSET)
    io_weight_percent: Annotated[int, Meta(ge=1, le=100)] | UnsetType = UNSET
    read_latency: NotNegative = UNSET  # microseconds
    write_latency: NotNegative = UNSET
    read_latency_percent: Percent = UNSET
    write_latency_percent: Percent = UNSET
    enable_user_model: Flag = UNSET
    model_read_bps: NotNegative = field(name="modelReadBPS", default=UNSET)
    model_write_bps: NotNegative = field(name="modelWriteBPS", default=UNSET)
    model_read_seq_iops: NotNegative = field(name="modelReadSeqIOPS", default=UNSET)
    model_write_seq_iops: NotNegative = field(name="modelWriteSeqIOPS", default=UNSET)
    model_read_rand_iops: NotNegative = field(name="modelReadRandIOPS", default=UNSET)
    model_write_rand_iops: NotNegative = field(name="modelWriteRandIOPS", default=UNSET)


class Block(Strict, frozen=True, kw_only=True):
    name: Word = ""
    type: Literal["device", "volumegroup", "podvolume"] = "device"
    io_cfg: IoConfig = IoConfig()


class BlkioFields(Strict, frozen=True, kw_only=True):
    blocks: Several[Block] = ()


class BlkioQos(BlkioFields, frozen=True, kw_only=True):
    enable: Flag = UNSET


class NetworkQos(Strict, frozen=True, kw_only=True):
    """A number is a percentage of the whole, a word is a quantity of bits per second."""

    enable: Flag = UNSET
    ingress_request: int | Word | UnsetType = UNSET
    ingress_limit: int | Word | UnsetType = UNSET
    egress_request: int | Word | UnsetType = UNSET
    egress_limit: int | Word | UnsetType = UNSET


class ClassQos(Strict, frozen=True, kw_only=True):
    cpu_qos: CpuQos | UnsetType = field(name="cpuQOS", default=UNSET)
    memory_qos: MemoryBlock | UnsetType = field(name="memoryQOS", default=UNSET)
    blkio_qos: BlkioQos | UnsetType = field(name="blkioQOS", default=UNSET)
    resctrl_qos: ResctrlQos | UnsetType = field(name="resctrlQOS", default=UNSET)
    network_qos: NetworkQos | UnsetType = field(name="networkQOS", default=UNSET)


class Policies(Strict, frozen=True, kw_only=True):
    cpu_policy: Literal["groupIdentity", "coreSched"] | UnsetType = UNSET
    net_qos_policy: Literal["tc", "terway-qos"] | UnsetType = field(name="netQOSPolicy", default=UNSET)


class ResourceQos(Strict, frozen=True, kw_only=True):
    policies: Policies | UnsetType = UNSET
    lsr_class: ClassQos | UnsetType = UNSET  # of LSE, too
    ls_class: ClassQos | UnsetType = UNSET
    be_class: ClassQos | UnsetType = UNSET
    system_class: ClassQos | UnsetType = UNSET
    cgroup_root: ClassQos | UnsetType = UNSET


def _memory(ratio: int, scale: int, adjust: int) -> Plain:
    return {
        "minLimitPercent": 0,
        "lowLimitPercent": 0,
        "throttlingPercent": 0,
        "wmarkRatio": ratio,
        "wmarkScalePermill": scale,
        "wmarkMinAdj": adjust,
        "priorityEnable": 0,
        "priority": 0,
        "oomKillGroup": 0,
    }


def _class(identity: int, expeller: bool, memory: Plain, cat_end: int) -> Plain:
    cache: Plain = {"catRangeStartPercent": 0, "catRangeEndPercent": cat_end, "mbaPercent": 100}
    return {
        "cpuQOS": {"enable": False, "groupIdentity": identity, "schedIdle": 0, "coreExpeller": expeller},
        "memoryQOS": {"enable": False, **memory},
        "resctrlQOS": {"enable": False, **cache},
        "blkioQOS": {"enable": False},
        "networkQOS": {"enable": False},
    }


DEFAULTS: Final[Plain] = {
    "policies": {"cpuPolicy": "groupIdentity", "netQOSPolicy": "tc"},
    "lsrClass": _class(2, True, _memory(95, 20, -25), 100),
    "lsClass": _class(2, True, _memory(95, 20, -25), 100),
    "beClass": _class(-1, False, _memory(95, 20, 50), 30),
    "systemClass": _class(0, False, _memory(0, 50, 0), 100),
    "cgroupRoot": {},
}
