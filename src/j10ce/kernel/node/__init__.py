"""The machine as a target of its own, `node`: settings that belong to no cgroup.

A Setting of the node comes in; a file below /proc/sys, /sys/kernel/mm or debugfs goes out.

    estate     says that the node is there, and what it is
    sysctl     is the back end of kernel parameters
    features   is the back end of features of the scheduler
"""
