"""Which of the nodes that kube-scheduler would take leave reserved capacity alone.

Pods and nodes of Kubernetes come in; nodes that may be taken go out, with scores.

    wire        is how kube-scheduler writes and reads
    occupancy   is what pods and unused units take of every node
    offers      remembers pods that were offered nodes and are not bound yet
    extender    answers filter, prioritize and preempt
"""
