"""The labels, annotations and resources that Koordinator knows."""

from __future__ import annotations

from typing import Final

QOS_LABEL: Final = "koordinator.sh/qosClass"
SUB_PRIORITY_LABEL: Final = "koordinator.sh/priority"
PRIORITY_CLASS_LABEL: Final = "koordinator.sh/priority-class"
EVICTION_LABEL: Final = "koordinator.sh/eviction-enabled"
SKIP_VALIDATION_LABEL: Final = "pod.koordinator.sh/skip-enhanced-validation"
CORE_GROUP_LABEL: Final = "koordinator.sh/core-sched-group-id"
CORE_POLICY_LABEL: Final = "koordinator.sh/core-sched-policy"

MEMORY_QOS: Final = "koordinator.sh/memoryQOS"
CPU_BURST: Final = "koordinator.sh/cpuBurst"
CPU_QOS: Final = "koordinator.sh/cpuQOS"
BLKIO_QOS: Final = "koordinator.sh/blkioQOS"
NETWORK_QOS: Final = "koordinator.sh/networkQOS"
OOM_SCORE_ADJ: Final = "koordinator.sh/oom-score-adj"
OOM_SCORE_ADJ_SPEC: Final = "koordinator.sh/oom-score-adj-spec"
EVICTION_POLICY: Final = "koordinator.sh/eviction-policy"
EVICTION_PRIORITY: Final = "koordinator.sh/eviction-priority"
RESCTRL: Final = "node.koordinator.sh/resctrl"
EXTENDED_RESOURCES: Final = "node.koordinator.sh/extended-resource-spec"
RESOURCE_SPEC: Final = "scheduling.koordinator.sh/resource-spec"
NUMA_SPEC: Final = "scheduling.koordinator.sh/numa-topology-spec"
RESOURCE_STATUS: Final = "scheduling.koordinator.sh/resource-status"
DEVICE_ALLOCATED: Final = "scheduling.koordinator.sh/device-allocated"
REPLACE_RESOURCES: Final = "pod.koordinator.sh/replace-resources"
RESERVATION_POD: Final = "scheduling.koordinator.sh/reserve-pod"
SKIP_UPDATE_RESOURCES: Final = "config.koordinator.sh/skip-update-resources"

RESERVATION: Final = "node.koordinator.sh/reservation"
SYSTEM_QOS: Final = "node.koordinator.sh/system-qos-resource"
NETWORK_BANDWIDTH: Final = "node.koordinator.sh/network-bandwidth"
COLOCATION_STRATEGY: Final = "node.koordinator.sh/colocation-strategy"
NORMALIZATION_RATIO: Final = "node.koordinator.sh/cpu-normalization-ratio"
NORMALIZATION_ENABLED: Final = "node.koordinator.sh/cpu-normalization-enabled"
CPU_BASIC_INFO: Final = "node.koordinator.sh/cpu-basic-info"
CPU_TOPOLOGY: Final = "node.koordinator.sh/cpu-topology"
POD_CPU_ALLOCS: Final = "node.koordinator.sh/pod-cpu-allocs"
CPU_SHARED_POOLS: Final = "node.koordinator.sh/cpu-shared-pools"
BE_CPU_SHARED_POOLS: Final = "node.koordinator.sh/be-cpu-shared-pools"
CPU_MANAGER_POLICY: Final = "kubelet.koordinator.sh/cpu-manager-policy"

CPU_RECLAIM_LABEL: Final = "node.koordinator.sh/cpu-reclaim-ratio"
MEMORY_RECLAIM_LABEL: Final = "node.koordinator.sh/memory-reclaim-ratio"
MID_STATIC_CPU_LABEL: Final = "node.koordinator.sh/mid-static-cpu-reserved-ratio"
MID_STATIC_MEMORY_LABEL: Final = "node.koordinator.sh/mid-static-memory-reserved-ratio"

BATCH_CPU: Final = "kubernetes.io/batch-cpu"  # thousandths of a CPU, as an integer
BATCH_MEMORY: Final = "kubernetes.io/batch-memory"
MID_CPU: Final = "kubernetes.io/mid-cpu"  # thousandths of a CPU, as an integer
MID_MEMORY: Final = "kubernetes.io/mid-memory"

# Features that may evict, as the annotation `eviction-policy` and the gates call them.
EVICTORS: Final = (
    "BECPUEvict",
    "CPUEvict",
    "CPUAllocatableEvict",
    "BEMemoryEvict",
    "MemoryEvict",
    "MemoryAllocatableEvict",
)
