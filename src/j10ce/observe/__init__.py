"""The only code that samples the machine.

Cgroups and the node come in; a Snapshot of them goes out, with series of what was measured.

    sensor     is the seam to what is sampled
    sensors/   are ours: cgroups, the machine, pressure
    demand     weighs the threads of a group
    siblings   says who else competes inside a cgroup
    groups     keeps the part of the tree that matters
    ring       is one measured number over time
    series     is every number of a node
    calibrations are what was measured of disks
    closely    chooses the workloads that are looked at more often
    observer   puts all of it into one snapshot
"""
