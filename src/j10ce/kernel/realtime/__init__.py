"""The real-time floor: threads of a workload run before all fair ones within its CPU floor, and as fair ones beyond it.

The agent says which workloads and how much; a process of its own acts every 20 ms. That process imports the standard
library and this room only, has its memory locked, and runs one priority above what it keeps.

    law       is the arithmetic: credit, spinners, how long a CPU may be real-time        (pure)
    machine   reads counters and threads of the kernel, and changes the policy of a thread
    spinners  are threads that do not sleep
    ward      is one workload in the keeper's care
    crowding  counts how long each CPU was real-time
    wire      is what agent and keeper say to each other
    keeper    is the process
"""
