"""How best effort gives way by a cap: how many CPUs the others leave, and who has which of them.

What the others use comes in; quotas and CPU sets go out.

    terms      says which law holds here, and whether it is kept by quotas or by CPUs
    room       says how many CPUs the others leave
    water      divides a room among those who want it
    confine    says which CPUs a room is
    suppress   is the controller
"""
