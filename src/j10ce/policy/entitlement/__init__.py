"""From policies and workloads to what each workload is promised.

A document and workloads come in; entitlements and refusals go out.

    ledger    is the book of reservations of one node
    claims    says who asks for which floor, and who pays
    resolve   puts all of it together
"""
