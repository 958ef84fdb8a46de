"""The names of plugins: what a profile asks by default, what it may ask, and what is Kubernetes' own affair."""

from __future__ import annotations

from typing import Final

# In force unless a profile says otherwise, in this order: filters are reasons in it.
DEFAULTS: Final = (
    "SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts",
    "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity", "DefaultPreemption",
    "NodeResourcesBalancedAllocation", "ImageLocality",
)  # fmt: skip
NAMES: Final = (*DEFAULTS, "Coscheduling", "ElasticQuota", "Reservation", "LoadAware", "QosAware")
# Of no effect here: bindings are the process's own work, and VolumeBinding judges all volumes.
SILENT: Final = (
    "DefaultBinder", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits", "EBSLimits", "GCEPDLimits",
    "AzureDiskLimits", "CinderLimits", "NonCSILimits", "DynamicResources", "NodeDeclaredFeatures", "GangScheduling",
)  # fmt: skip
