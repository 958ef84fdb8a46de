"""Whose packets go first, what each workload may send and receive, and what a link is queued for.

Entitlements and the node's links come in; rates, floors, ceilings and priorities go out, as proposals. What is left
above the floors the kernel lends, packet by packet: nothing here follows from what was measured, so nothing here flaps.

    levels    says whose packets go first, by tier and class
    shaping   says which links are queued for, and at which rate
    traffic   says what each workload has on them
    network   is the controller
    divide    is the law by which a link ends up divided, for whoever explains or checks it
"""
