"""What a scenario is played on, beside CPUs: a link, a disk, a box of memory. All of it is the run's own.

The kernel takes all of it away when this process ends, however that is: namespaces go with their last process, a loop
device with whoever has it open; cgroups are the janitor's.

    stage   is what all have in common, and the one that has nothing
    link    is a veth pair to a switch whose next port is slower than both
    disk    is a loop device over memory
    box     is a cgroup with a limit of memory
    redis   is a server that others wrote
    wires   makes namespaces, links, addresses and queues
"""
