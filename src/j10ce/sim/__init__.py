"""Machines that exist only in memory, under the agent's real ring, and clusters, under the scheduler's real core.

Workloads and what they want over time come in; what each of them got, and all that the agent did about it, go out.

    world      is one machine: loads, a clock, the ring
    observer   is what the agent sees of it
    sharing    divides CPU time by the kernel's rules
    pages      divides memory, and says who waits for it
    kernel     takes and refuses changes as a real kernel does, with faults on demand
    cgroups    is the tree that all of them share
    cluster/   is a cluster and its owners over hours and days
"""
