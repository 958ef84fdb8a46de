"""Disks as targets, and what cgroups may do with each of them.

A Setting of a disk or of a cgroup, with the disk's number, comes in; a line of a kernel file goes out.

    lines       reads and writes lines that begin with a disk's number
    estate      says which disks are there
    controller  is the files of the controller, on cgroup v2 and v1
    files       is the back end of cgroups: caps, weight and latency
    cost        is the back end of disks: what an I/O costs, and whether that divides the disk by weight
"""
