"""From policies and workloads to what each workload is promised.

A document and workloads come in; entitlements and refusals go out.

    ledger    is the book of reservations of one node
    claims    says who asks for which floor, and who pays
    layers    says what counts of what is said of a workload: by its profile, for its node, of itself
    traffic   says what it may send and receive
    resolve   puts all of it together
"""
