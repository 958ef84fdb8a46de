"""Where a workload should run, and why.

A workload and the cluster come in; a node goes out, and a verdict on every other. Nothing is changed.

    demand   says what a workload asks of each node
    fit      says which nodes can hold it
    score    says which of them is the best
    place    filters, scores and ranks
"""
