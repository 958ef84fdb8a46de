"""What becomes of a policy: whether the fleet admits it, and what its nodes report of it.

Policies, nodes and reports come in; the status of each policy and its history go out.

    roster         says who is in the fleet, and with how much
    pledges        reads objects as the fleet's ledger does
    admission      words what the fleet makes of one policy
    reservations   decides which policies are admitted, and where their units are
    reports        keeps what agents say, by policy
    watched        measures how long nodes have obeyed a revision
    readiness      sums a status up for tools that wait
    status         is the status that a policy deserves
    transitions    says what a new status means to whoever looks after the policy
    history        keeps every version of a spec as a PolicyRevision
    keeper         runs all of this, and writes the status
"""
