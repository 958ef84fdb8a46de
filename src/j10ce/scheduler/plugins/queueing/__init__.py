"""Who is next, who waits, and who has to go for whom, by priorities, groups and quotas.

Pods and what a cluster holds come in; keys of the queue, waits, permits and victims go out.

    priority     PrioritySort: the higher priority first
    gates        SchedulingGates: pods that others hold back
    preemption   DefaultPreemption: pods of lower priority make room
    reprieve     finds which pods of a node have to go, and which node is the one
    groups       Coscheduling: the pods of a group start together, or not at all
    quota        ElasticQuota: what a namespace is sure of, what it may borrow, and what it gives back
"""
