"""Decisions about the whole fleet: what fits where, and what is held for whom. Pure but for one room; NumPy allowed.

Nodes, policies and workloads come in; placements, pledges and refusals in numbers go out.

    cluster     is the fleet in arrays, one row per node
    book/       is what runs where, kept by events
    reading/    makes facts of Kubernetes' objects
    accounts/   is how well the pods of each owner are served
    cycle/      decides one pod after another
    ledger/     is the book of reservations of a fleet
    plugins/    say what is looked at for it
    config/     says which plugins are asked, and what they are told
    process/    is what runs around all of it
    place/      says where a workload should run
    extender/   says which nodes kube-scheduler may take
    process/    is j10ce-qos-scheduler: the core with a cluster around it, not pure
"""
