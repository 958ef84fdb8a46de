"""Where an arm puts the service and its antagonists: in the cgroups that others would make, or in ours.

Processes that wait come in; they are in their cgroups while the block lasts, and the cgroups are gone after it.

    layout       is what all have in common, and the one that leaves everybody where they are
    pods         is the cgroups of kubelet, with its CPU shares
    suppressed   is those with Koordinator's law: a quota for best effort that follows what the others leave
    ours         is an agent of its own, and workloads of a profile
    boxed        is a cgroup with a limit of memory, whose children that agent adopts
"""
