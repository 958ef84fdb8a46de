"""The ring: sample, decide, write, report; and when it runs.

Workloads, policies and holds come in; settings of the kernel and a Report go out.

    objects      turns Workload objects into the ring's workloads and back
    contained    keeps a failing controller from stopping the others
    holds        says which settings an operator has frozen
    own_cgroup   protects the agent itself
    arrival      is the part of the ring that a newcomer has to wait for
    ring         is one run: sample, snapshot, propose, arbitrate, apply
    runner       decides when the ring runs, and hands workloads in and reports out
    pressure     runs the ring at once when pressure rises
    evictions    asks for the evictions that the ring decided on
    what_if      says what would be written for objects that exist on paper only
    kubelets_tree   says where a pod on paper would be
    in_force     lends what is in force to such questions
"""
