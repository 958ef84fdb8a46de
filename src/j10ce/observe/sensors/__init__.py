"""Sensors: each reads one source of the machine.

Files of the kernel come in; samples go out, one per series that has something to say.

    cgroup     samples cgroups
    node       samples the machine, and says what it is
    caches     samples groups of resctrl
    psi        is pressure, and triggers for its spikes
    counters   picks numbers out of kernel files
"""
