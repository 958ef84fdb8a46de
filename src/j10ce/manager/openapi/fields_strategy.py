"""What every field of a NodeStrategy means. docs/node-strategy.md has the same with units, ranges and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SAID: Final = "What is said here replaces what the profile says; the rest stays."

STRATEGY: Final[Mapping[str, Mapping[str, str]]] = {
    "NodeStrategy": {
        "": "What is said of nodes: how best effort gives way there, what may burst, who is evicted, what is lent.",
    },
    "NodeStrategySpec": {
        "": "Every field may be left out: then a strategy of lower priority has the word, in the end the default.",
        "node_selector": "The nodes that it speaks of, by their labels; every node when not set.",
        "priority": "Of strategies that say the same field the one with the highest has the word, then the first name.",
        "rollout": "How a change of this object spreads over the nodes.",
        "suppress": "How best effort gives way when the protected need CPU time.",
        "burst": "What a workload with a CPU limit may use beyond it for a while.",
        "profiles": "What differs from a QoSProfile on these nodes, by the name of the profile.",
        "eviction": "When workloads have to leave the node, which, and how fast.",
        "sysctls": "Settings of the kernel for the whole node.",
        "host_applications": "What runs on the nodes beside all workloads; a list replaces the one below it whole.",
        "overcommit": "How much may be lent to reclaimable workloads; goes over the overcommit file of the manager.",
        "normalization": "What a CPU of these nodes is worth.",
        "interference": "What is done about a workload that slows others down.",
        "system_cpus": "The CPUs of tier system.",
    },
    "SystemCpusSection": {
        "": "The CPUs of what the node itself lives on: of workloads of tier system.",
        "cpus": "As the kernel lists them, such as 0-1,8; those that a node lacks do not count there.",
        "exclusive": "Everyone else of ours keeps off them; true when not set.",
    },
    "SuppressSection": {
        "": "How best effort gives way when the protected need CPU time.",
        "mode": "By a quota, by fewer CPUs, by a number of CPUs that stay idle, or whatever fits the kernel (auto).",
        "threshold_percent": "Percent of the node's CPUs that all workloads together may use before it gives way.",
        "min_percent": "Percent of the node's CPUs that best effort keeps in any case.",
        "buffer_cpus": "CPUs that are kept idle for the protected, in mode buffer.",
    },
    "BurstSection": {
        "": "What a workload with a CPU limit may use beyond it for a while.",
        "policy": "none, what it has saved up (static), a quota that is raised while it is throttled (quota), or both.",
        "static_percent": "Percent of its limit that it may save up.",
        "quota_percent": "Percent of its limit that its quota is raised to at most.",
        "period": "For how long it may use the highest quota; unlimited when not set.",
        "share_pool_percent": "Percent of the shared CPUs in use above which no quota is raised.",
    },
    "ProfileOverlay": {
        "": "What differs from a QoSProfile on these nodes.",
        "cpu": f"Of the profile's `cpu`. {SAID}",
        "memory": f"Of the profile's `memory`. {SAID}",
        "cache": f"Of the profile's `cache`. {SAID}",
    },
    "CpuOverlay": {"": "Fields of a profile's `cpu` that differ on these nodes."},
    "MemoryOverlay": {"": "Fields of a profile's `memory` that differ on these nodes."},
    "EvictionRequest": {
        "": "A workload that a node wants to see leave.",
        "namespace": "Where it is.",
        "name": "What it is called.",
        "uid": "Of the pod: another one of that name is not meant.",
        "why": "The trigger, with numbers.",
        "since": "Since when.",
    },
    "EvictionSection": {
        "": "The last resort: when workloads have to leave the node, which, and how fast.",
        "mode": "propose: say who would have to leave, and do nothing. enforce: evict.",
        "per_minute": "At most so many evictions of one node within a minute.",
        "cool_down": "How long to wait after an eviction before the next one is thought of.",
        "memory": "By the memory in use.",
        "cpu": "By the CPU time in use, and by what best effort gets of it.",
        "allocatable": "By what is requested of reclaimable resources.",
        "priority_threshold": "Whoever has a higher priority is not evicted.",
    },
    "MemoryEviction": {
        "": "By the memory in use, in percent of the node's.",
        "threshold_percent": "Evictions begin above it.",
        "lower_percent": "They end below it; 2 below the threshold when not set.",
    },
    "CpuEviction": {
        "": "By CPU time: of the node, and of what best effort gets of its wishes.",
        "threshold_percent": "Percent of the node's CPUs in use above which evictions begin.",
        "lower_percent": "They end below it; 2 below the threshold when not set.",
        "satisfaction_lower_percent": "Best effort is evicted when it gets less of its wishes than this percentage.",
        "satisfaction_upper_percent": "Evictions for that end when it gets this percentage of them again.",
        "usage_percent": "Only while best effort uses at least this percentage of what it gets.",
        "window": "The time over which all of it is measured.",
        "policy": "What best effort gets: by its real limit, or by what may be allocated to it.",
    },
    "AllocatableEviction": {
        "": "By what is requested of reclaimable resources, in percent of what there is of them.",
        "cpu_threshold_percent": "Evictions begin when requests of CPU time are above it.",
        "cpu_lower_percent": "They end below it.",
        "memory_threshold_percent": "Evictions begin when requests of memory are above it.",
        "memory_lower_percent": "They end below it.",
        "priority_threshold": "Whoever has a higher priority is not evicted for it.",
    },
    "SysctlSection": {
        "": "Settings of the kernel for the whole node.",
        "min_free_kbytes_factor": "vm.min_free_kbytes, in ten-thousandths of the node's memory.",
        "watermark_scale_factor": "vm.watermark_scale_factor, in ten-thousandths of the memory.",
        "sched_features": "Features of the kernel's scheduler as it spells them: NAME switches one on, NO_NAME off.",
        "sched_group_identity": "On kernels with cpu.bvt_warp_ns: whether that counts.",
        "sched_idle_saver_wmark": "On those: ns that a CPU is idle on average before best effort has its rest.",
        "memcg_reap_background": "On kernels that reap what removed cgroups left behind: whether they do.",
        "page_cache_limit": "On kernels that limit page cache: whether such limits count.",
    },
    "HostApplication": {
        "": "Something that runs beside all workloads, in a cgroup that it has already.",
        "name": "Unique in the list.",
        "cgroup": "Its path below the root of the hierarchy.",
        "profile": "The QoSProfile that it gets; none when empty.",
        "priority": "The band that it counts in.",
    },
    "OvercommitSection": {
        "": "How much of the node may be lent to reclaimable workloads.",
        "cpu": "The law for CPU time.",
        "memory": "The law for memory.",
        "degrade": "A node that is silent for longer lends nothing.",
        "refresh": "How old a published amount may be while it is not exact.",
        "difference": "The relative change that is published at once.",
    },
    "LawSection": {
        "": "The law by which one resource is lent.",
        "threshold_percent": "Percent of the capacity for everyone together.",
        "by": "What counts as taken: use, requests, or the larger of both.",
        "batch_percent": "Percent of the capacity that is lent as batch at most; no cap when not set.",
        "mid_percent": "Percent of the capacity that is lent as mid at most.",
        "mid_unallocated_percent": "Percent of what nobody was promised that is lent as mid on top.",
        "mid_static_percent": "Percent of the capacity that is lent as mid, whatever is used or predicted.",
        "safety_percent": "Percent on top of the predicted peak.",
        "reserved": "What is kept for the machine itself, where that is more than the headroom.",
    },
    "NormalizationSection": {
        "": "CPUs of different speed made comparable.",
        "ratio": "What a CPU of these nodes is worth, in CPUs of the slowest of the fleet.",
    },
    "InterferenceSection": {
        "": "What is done about a workload that slows others down.",
        "mode": 'Nothing ("off", in quotes: YAML reads it as a truth value), say who it is, or also act.',
    },
}
