"""What promises are worth, by the kernel's own rules.

The tree as it is or would be comes in; what each workload has for certain goes out, and who annuls it.

    support          says in words what this machine cannot enforce
    cpu_share        is the CPU time that a group has for certain
    memory_share     is what memory.min and memory.low are really worth
    memory_kept      is how much memory the kernel keeps for a workload
    rates            says what floors of rates are worth
    disk_load        says so of disks
    foreign_claims   is what others claim of the machine's memory
    effective        says whether what was promised holds
"""
