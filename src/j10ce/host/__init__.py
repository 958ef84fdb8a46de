"""The machine as it is, read only.

Paths of /proc and /sys come in; mounts, open descriptors and commands to start go out.

    files     reads kernel files by descriptors that stay open
    mounts    says which hierarchies are mounted where
    handles   leads from a workload's handle to its cgroups
    topology  says which CPUs share what
    perf      counts what a cgroup's tasks do on the CPUs
    resctrl   says what can be divided of caches and memory bandwidth
    disks     says which disks there are, and which file systems are on them
    net/      reads the network: links, and queues on them
    child     starts processes of ours, with our own code only
"""
