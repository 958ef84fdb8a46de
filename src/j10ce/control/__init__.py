"""What should change now, and why. Pure: a controller reads a Snapshot and returns Proposals.

A Snapshot comes in; bounds and wishes for settings go out, each with its reason.

    controller   is the seam between the ring and its controllers
    law          holds the pieces that control laws are made of
    besteffort   says who runs on what the others leave
    allowance    says what a CPU limit is here, and how far it may be exceeded
    cpu/         is about CPU time
    memory/      is about memory
    interference/  says who suffers from whom, and what helps
    cache/       is about the last-level cache and the bandwidth to memory
    disk/        is about disks
    network/     is about traffic on links
    core_sched   says who shares a core with whom
    lent         is what a pod may use of what the others leave over
    eviction/    is the last resort: who gives way in stages, and leaves
    limits       is what a workload may use at most
    own          protects the agent itself
    parameters   is what the node's strategy says of the machine itself
    floors       is what a workload was promised, of every resource
    builtin      is the table of controllers
"""
