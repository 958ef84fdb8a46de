"""What every field of every kind means, for `kubectl explain`, OpenAPI, the .proto and docs/api.md.

It stands here and not beside the fields, since the agent pays for every string that the model holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from j10ce.manager.openapi.fields_answered import ANSWERED
from j10ce.manager.openapi.fields_devices import DEVICES
from j10ce.manager.openapi.fields_memory import MEMORY
from j10ce.manager.openapi.fields_strategy import STRATEGY


def described(struct: type[Struct], field: str = "") -> str:
    """One field's meaning, or the struct's own; empty for what is not part of a kind."""
    names = [cls.__name__ for cls in struct.__mro__]
    for name in (*names, OVERLAYS.get(struct.__name__, "")):
        if text := FIELDS.get(name, {}).get(field):
            return text
    return COMMON.get(field, "") if struct.__name__ in FIELDS else ""


OVERLAYS: Final = {  # a field of these means what it means there
    "CpuOverlay": "CpuSection",
    "MemoryOverlay": "MemorySection",
}
CONDITIONS: Final = "What holds of it at present; a condition that is missing is not known."
COMMON: Final[Mapping[str, str]] = {
    "metadata": "Name, labels and what the API notes down about every object.",
    "spec": "What is wanted.",
    "status": "What is; written by the control plane and the agents.",
    "conditions": CONDITIONS,
    "observed_generation": "The generation that this speaks of.",
}

FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    **ANSWERED,
    **STRATEGY,
    **DEVICES,
    # ------------------------------------------------------------ kinds
    "QoSProfile": {
        "": "A named level of service: a tier, and what it means for CPU, memory, network, disk and cache.",
    },
    "MinimalReservationPolicy": {
        "": "A promise: every matching workload has at least these resources, and so many units are held for it.",
    },
    "NodeQoS": {"": "One host: what its operator decided, what its agent reports, what the manager computes of it."},
    "Hold": {"": "An operator's freeze on settings of one target, until it expires."},
    "Workload": {"": "Something that can be given quality of service: input of `place`, and what a host runs."},
    "PolicyRevision": {
        "": "One kept version of a policy's spec; the last ten of each policy are owned by it.",
        "revision": "Counts the versions of the policy, from 1.",
        "data": "The spec as it was.",
    },
    "Credential": {"": "Recognises the token `j10ce.NAME.SECRET`; for administrators alone."},
    # ------------------------------------------------------------ metadata
    "Meta": {
        "": "Name, labels and what the API notes down about every object.",
        "name": "Unique among the objects of its kind, in its namespace where the kind has namespaces.",
        "generate_name": "Beginning of a name that the API completes, when no name is given.",
        "namespace": "Empty for a kind without namespaces.",
        "uid": "Tells this object from an earlier one of the same name; set by the API.",
        "resource_version": "Moves with every change. A write that carries it fails when the object has moved on.",
        "generation": "Moves with every change of what is wanted; set by the API.",
        "creation_timestamp": "Set by the API.",
        "labels": "What selectors look at.",
        "annotations": "Notes that nothing selects by.",
        "owner_references": "Objects that this one goes with.",
        "managed_fields": "Who decided which field; kept by the API.",
    },
    "Owner": {
        "": "An object that another one goes with.",
        "api_version": "Its group and version, such as j10ce.io/v1alpha1.",
        "kind": "Its kind.",
        "name": "Its name.",
        "uid": "Its uid.",
        "controller": "Whether it is the one that manages the object; for tools of Kubernetes.",
        "block_owner_deletion": "Whether Kubernetes keeps the owner until the object is gone.",
    },
    "ManagedFields": {
        "": "Who decided which fields: server-side apply does not take them from others unless forced.",
        "manager": "Who: the field manager of the request.",
        "operation": "How: by server-side apply, or by any other write.",
        "api_version": "The version that the fields are spelled in.",
        "time": "When this set of fields last changed.",
        "fields_type": "How `fieldsV1` is spelled.",
        "fields_v1": "The fields, as nested mappings.",
        "subresource": "Which part was written: `status`, or empty.",
    },
    "Selector": {
        "": "A label selector: all of its parts must hold; an empty one selects everything.",
        "match_labels": "Labels that must have exactly these values.",
        "match_expressions": "Requirements that must all hold.",
    },
    "Requirement": {
        "": "One requirement of a label selector.",
        "key": "The label.",
        "operator": "How its value must relate to `values`.",
        "values": "For In and NotIn, at least one; none for Exists and DoesNotExist.",
    },
    "Condition": {
        "": "One thing that holds, does not hold, or is not known.",
        "type": "What it is about, such as Admitted or Effective.",
        "status": "Whether it holds.",
        "reason": "Why, in one word for programs.",
        "message": "Why, in one sentence with the numbers.",
        "last_transition_time": "When its status last changed.",
    },
    # ------------------------------------------------------------ QoSProfile
    "QoSProfileSpec": {
        "": "What the level means.",
        "tier": "How well it is protected, from system down to besteffort.",
        "priority": "Among profiles whose selectors match the same workload the highest wins, then the name.",
        "selector": "Workloads that get this profile without naming it.",
        "namespace_selector": "Namespaces that may choose it; everyone when not set.",
        "rollout": "How a change of this object spreads over the nodes.",
        "cpu": "What it means for CPU time.",
        "memory": "What it means for memory.",
        "network": "What it means for the network.",
        "io": "What it means for disks.",
        "cache": "What it means for the last-level cache and memory bandwidth.",
    },
    "CpuSection": {
        "": "CPU time of a workload.",
        "weight": "Its share among the workloads of one tier.",
        "latency": "realtime: scheduled before normal work.",
        "pinning": "Which CPUs it runs on: all, the shared ones, CPUs of its own that it lends while they are idle, "
        "or some for itself alone.",
        "bind": "How CPUs of its own are chosen. full-cores: only whole cores. spread: one CPU of each core. "
        "Not set: whole cores where that is possible.",
        "burst": "Percent of its limit that it may save up while it uses less.",
        "idle": "Runs only when nothing else wants the CPU.",
        "core_sched": "Shares a core only with workloads that trust it.",
        "core_expeller": "Whose cores others stay off; not set: tiers exclusive, reserved and sensitive.",
        "suppressible": "May be squeezed when the protected tiers need the CPUs.",
    },
    **MEMORY,
    "CacheSection": {
        "": "Last-level cache and memory bandwidth of a workload.",
        "llc_start_percent": "Where its part of the cache begins.",
        "llc_end_percent": "Where its part of the cache ends.",
        "memory_bandwidth_percent": "Share of the memory bandwidth that it may use.",
    },
    "Rollout": {
        "": "How a change of an object spreads over the nodes.",
        "canary_percent": "Share of the nodes that obey the present revision; the others keep the one before.",
        "paused": "No further node takes the present revision.",
        "stop_on_failures": "Stop by itself when nodes fail with it.",
        "attempt": "Raised to try again after a stop.",
    },
    "PolicyStatus": {
        "": "How far an object came on the nodes.",
        "nodes": "How many nodes obey it, and which fail.",
        "rollout": "Where its rollout stands.",
    },
    "NodeCount": {
        "": "Of the nodes that have to obey the present revision.",
        "wanted": "How many have to.",
        "applied": "How many do.",
        "failing": "How many cannot.",
        "silent": "How many do not report.",
        "named": "The first of the failing ones.",
    },
    "FailingNode": {"": "A node that cannot obey.", "node": "Its name.", "why": "What it says."},
    "RolloutStatus": {
        "": "A node obeys either the present revision or the stable one, never a third.",
        "revision": "The generation that this speaks of; 0: nobody has looked yet.",
        "change": "Names what the spec asks for, `rollout` aside: the steps of one rollout share it.",
        "reached": "Cohorts below it may have the revision, in percent.",
        "stopped": "Why it stopped by itself; empty while it goes on.",
        "back": "Nodes that failed with the revision and went back to the stable one.",
        "first": "The node that takes the revision although its cohort is not reached: else nobody would.",
        "stable": "The last revision that all nodes took; 0: none.",
        "applied": "Since when every node obeys it without a failure.",
    },
    # ------------------------------------------------------------ MinimalReservationPolicy
    "MinimalReservationPolicySpec": {
        "": "What is promised, to whom, and where.",
        "minimum": "The floor of each matching workload, and the size of one unit.",
        "selector": "Workloads of this namespace that it is promised to; an empty one: all of them.",
        "units": "How many such shapes are held in the fleet, used or not.",
        "node_selector": "Nodes that may hold units; all when not set.",
        "lending": "Whether units that nobody uses may be lent.",
        "ttl": "How long the promise lasts from its creation; for ever when not set.",
        "rollout": "How a change of this object spreads over the nodes.",
    },
    "Minimum": {
        "": "An amount per resource; a resource that is not set is not meant.",
        "cpu": "CPUs, such as 500m, 2 or 25%.",
        "memory": "Bytes, such as 512Mi, 1Gi or 10%.",
        "network": "Bits a second, such as 100Mbit.",
        "disk_read": "Bytes a second, such as 50M.",
        "disk_write": "Bytes a second, such as 50M.",
    },
    "Lending": {
        "": "What becomes of units that nobody uses.",
        "mode": "Reclaimable: workloads that can be squeezed may use them meanwhile.",
        "within": "How soon they are back when they are needed; 30 s when not set.",
    },
    "MinimalReservationPolicyStatus": {
        "": "Whether the promise is kept, and where.",
        "phase": "Pending: not admitted. Active: kept. Degraded: kept in part. Expired: its time is over.",
        "admitted_generation": "Whose units the fleet holds: the present one unless an edit was refused; 0: none.",
        "units": "How many units are wanted, placed, used and lent.",
        "witness": "Which node holds how many units: the proof that all fit.",
        "effective": "Whether the floor really holds for each workload.",
    },
    "UnitCount": {
        "": "Units of a reservation.",
        "wanted": "That the policy asks for.",
        "placed": "That nodes hold.",
        "used": "That workloads use.",
        "lent": "That are lent until they are needed.",
    },
    "Witness": {"": "Units that one node holds.", "node": "Its name.", "units": "How many."},
    "EffectiveFloor": {
        "": "Whether a floor really holds for one workload on one node.",
        "node": "Where.",
        "workload": "For whom: namespace/name.",
        "resource": "Of what: cpu, memory, network, diskRead, diskWrite.",
        "promised": "What it was promised.",
        "effective": "What the kernel's settings guarantee it.",
        "reason": "Why it is less, when it is.",
        "source": "The object that promised it: MinimalReservationPolicy/payments/db.",
    },
    # ------------------------------------------------------------ NodeQoS
    "NodeQoSSpec": {
        "": "The operator's part.",
        "unschedulable": "Nothing is placed on it.",
        "disarmed": "Its agent observes and writes nothing.",
        "labels": "What node selectors look at, beside the object's own labels.",
    },
    "NodeQoSStatus": {
        "": "The agent's and the manager's part.",
        "node": "What its agent reports.",
        "overcommit": "What may be lent to reclaimable workloads, by result: batch-cpu, mid-memory, …",
        "overcommit_zones": "The same of each memory node, where there are several: batch-cpu, batch-memory.",
        "overcommit_strategy": "By which strategy of the overcommit file; `default` is that of the fleet.",
        "overcommit_terms": "How that was computed, step by step.",
        "overcommit_time": "When.",
    },
    "NodeReport": {
        "": "What the agent of a node reports.",
        "heartbeat": "When it last did.",
        "boot_id": "Changes with every boot of the host.",
        "agent_version": "The agent's version.",
        "armed": "Whether it writes settings, or only says what it would write.",
        "document": "Hash of the node document that it obeys.",
        "capacity": "What the host has, by resource.",
        "reserved": "What is promised here, by resource.",
        "claimed": "What is promised to running workloads, by namespace and resource.",
        "best_effort": "What tier besteffort uses, by resource.",
        "usage": "What is used, by resource: p50, p95, p98, max.",
        "usage_over": "What was used over 5, 10 and 30 minutes, by resource: avg, p50, p90, p95, p99.",
        "interference": "Who suffers from whom on this node, the worst first.",
        "demand": "What is used beside best effort, by resource.",
        "zones": "Of each memory node, by resource: capacity, and usage, request, larger of the protected bound to it.",
        "predicted": "The peak to expect, by resource: of all, and of the protected.",
        "pressure": "Percent of time that something waited, by resource.",
        "capabilities": "The doctor's findings.",
        "workloads": "How many run here.",
        "reservations": "What became of each reservation here.",
        "effective": "Floors that do not hold, and why.",
        "failing": "Objects that ask for something that did not happen here, and why.",
        "last_plan": "How the writes of the last plan ended: outcome and count.",
        "applied": "Traced changes that were carried out since the last report that arrived.",
        "evictions": "Workloads that the node wants to see leave now; one that is not listed any more may stay.",
        "topology": "Which of its CPUs share a core, a cache, memory, a socket.",
        "tiers": "Totals by tier, also of workloads that are left out below.",
        "left_out": "How many entries did not fit into the report, by its part.",
    },
    "TopologyReport": {
        "": "Which CPUs of a node share what.",
        "threads": "How many CPUs it has, as the kernel counts them.",
        "cores": "How many cores.",
        "sibling_step": "How far apart the numbers of the CPUs of one core are. 0: one CPU a core, or it differs.",
        "sockets": "The CPUs of every socket.",
        "numa_nodes": "The CPUs that are near to each memory node.",
        "l3_caches": "The CPUs that share each last-level cache.",
    },
    "CpuGroup": {
        "": "CPUs that share something.",
        "id": "Its number, as the kernel has it.",
        "cpus": "The CPUs, as the kernel lists them: 0-3,8-11.",
    },
    "TierTotal": {
        "": "What one tier has on a node, all its workloads together.",
        "workloads": "How many it has.",
        "promised": "The floors that they were promised, by resource.",
        "effective": "What the kernel guarantees of it, by resource.",
        "used": "What they use, by resource.",
    },
    "Capability": {
        "": "One line of the doctor.",
        "feature": "What it is about.",
        "ok": "Whether it works here.",
        "via": "What does it here: cgroup v1, cgroup v2, systemd, …",
        "needs": "What is missing.",
        "instead": "What is done without it.",
    },
    "ReservationReport": {
        "": "What one node makes of one MinimalReservationPolicy.",
        "source": "The policy: MinimalReservationPolicy/payments/db.",
        "generation": "The generation that the node obeys.",
        "workloads": "How many match.",
        "units": "How many units it holds, used ones included.",
        "used": "How many of them are used.",
        "charged": "Workloads that it pays for, on a unit or beyond.",
        "amount": "What those are promised, by resource.",
        "unprotected": "Workloads that match and lack the floor.",
        "unprotected_workloads": "The names of those, of as many as fit.",
        "refused": "What was not granted, with the numbers.",
    },
    "AppliedChange": {
        "": "A traced change of an object that a node has carried out.",
        "source": "The object.",
        "generation": "Its generation.",
        "trace": "W3C traceparent of the request that made the change.",
        "received": "When the agent got it.",
        "applied": "When its settings were written.",
        "writes": "How many settings that took.",
    },
    "OvercommitTerm": {
        "": "One step on the way to a reclaimable amount; the steps of a result, taken in order from zero, give it.",
        "result": "What it leads to: batch-cpu, batch-memory, mid-cpu, mid-memory.",
        "step": "What is done with the amount.",
        "name": "What the amount is.",
        "amount": "How much.",
        "why": "Where it comes from, with the numbers.",
    },
    # ------------------------------------------------------------ Hold, Workload, Credential
    "HoldSpec": {
        "": "What is frozen, until when, and why.",
        "target": "What: node, group/PATH, workload/NAMESPACE/NAME or part/NAMESPACE/NAME/PART.",
        "knobs": "Its settings, as the kernel spells them: cpu.max, memory.high, …",
        "expires": "Until when; the agent's clock decides.",
        "why": "Why, for whoever finds it.",
        "who": "Who did it.",
        "node": "In force there alone; empty: wherever the target is.",
        "value": "What they are set to; left as they are when not set.",
        "breaks_reservation": "Allows a value that cuts into a promised floor; the policy then says so.",
    },
    "HoldStatus": {"": "What became of the hold."},
    "WorkloadSpec": {
        "": "What the workload asks for.",
        "node": "Where it runs.",
        "requests": "What it expects to need.",
        "limits": "What it may use at most.",
        "minimum": "A reservation for this one workload.",
        "node_selector": "Where `place` may put it.",
        "parts": "Its containers or processes.",
    },
    "WorkloadStatus": {
        "": "What the workload gets.",
        "phase": "Whether it runs.",
        "profile": "The QoSProfile that it got.",
        "tier": "How well it is protected.",
        "native_class": "Its class in Kubernetes, for information.",
        "cgroup": "Where the kernel keeps it.",
        "floor": "What it was promised, by resource.",
        "usage": "What it uses, by resource.",
        "effective": "Whether its floors really hold.",
    },
    "CredentialSpec": {
        "": "What a token may do. The token itself is kept nowhere: its secret's hash recognises it.",
        "role": "viewer reads, editor writes policies, node reports for one node, admin does all, bootstrap enrols.",
        "hash": "sha256: and 64 hex digits, of the secret.",
        "node": "Role node: the one that it speaks for.",
        "expires": "Until when it counts; for ever when not set.",
        "uses": "Role bootstrap: how many nodes it may still enrol.",
        "former_hash": "Of the secret before the last rotation.",
        "former_expires": "Until when that one counts, too.",
    },
}
