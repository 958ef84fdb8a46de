"""The only code that changes the machine: every write is journalled, ordered, read back and undoable.

A Plan comes in; settings of the kernel and an Outcome for each change go out.

    kernel      is the facade: apply a plan, give it all back, notice who else writes
    values      writes values: guard, journal, write, read back
    structure   changes the tree itself
    owner       says who owns the cgroup tree, and through what it is changed
    probe       finds out what this machine can enforce
    guard       is the last look before a write
    routes      leads from a target to its place, and from a setting to its back end
    record/     remembers what was there before us, and gives it back
    systemd/    is the back end of unit properties
    cgroup/     is the back end of cgroup files
    process     holds facts about a process
    backend     is the seams that back ends and trees implement
    file        reads and writes kernel files
    slow        is the thread for writes that may block
    actions     does what leaves no value behind
    realtime/   keeps threads real-time within the floors of their workloads
    tasks/      is the back end of what all threads or processes of a workload have
    net/        is the estates and the back ends of links, and of what passes them
    resctrl/    is the estate and the back end of cache groups
    disk/       is the estate and the back ends of disks
    node/       is the estate and the back end of the machine itself
"""
