"""CPU time: floors as weights, whole CPUs, and what best effort may use.

A Snapshot comes in; proposals for weights, quotas and CPU sets go out.

    weights        are the least weights that keep promises among siblings
    cpusets/       says which CPUs workloads run on
    field          says what weights give where CPU sets differ
    confined       is the same as weights where some siblings may not use all CPUs
    needs          says what every target brings to the contest
    floors         turns floors into weights, from the root down
    rivals         says whom an idle group yields to
    identity       says who preempts whom, where the kernel knows that
    realtime       lets workloads run before all others within their floors
    idle           lets best effort run when no one else wants the CPU
    suppression/   gives best effort what the others leave
    bursting/      lets a workload exceed its limit for a while
"""
