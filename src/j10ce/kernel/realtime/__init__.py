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
    watch     is the agent's side of it: starts it, beats, and puts all to fair when it is dead or silent
    backend   is the back end of `sched.realtime`
    budgets   is the back end of `cpu.rt_runtime_us`, which cgroup v1 may want
    nets      says whether a runaway workload could lock this machine up
"""
