"""The store of a Kubernetes cluster: our CRDs, and what we read of its own kinds.

Writes come in and become patches; one watch per kind feeds who listens here.

    body      says what a write tells the API server
    feed      is the changes of one kind
    elector   is leadership by a Lease
    store     puts these together
"""
