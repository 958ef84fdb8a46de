"""Sensors: each reads one source of the machine.

Files of the kernel come in; samples go out, one per series that has something to say.

    cgroup     samples cgroups
    node       samples the machine, and says what it is
    caches     samples groups of resctrl
    traffic    samples links, and the classes of workloads on them
    connections  samples how TCP fares
    psi        is pressure, and triggers for its spikes
    run_queue  is how long threads wait for a CPU, where cgroups have no pressure
    reclaim    says whether the machine runs short of memory
    cpi        is cycles per instruction, where there are hardware counters
    disks      is what workloads do with each disk, and what each disk does
    disk_watch notices when disks or mounts come and go
    counters   picks numbers out of kernel files
"""
