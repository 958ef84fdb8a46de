"""A cluster that exists only in memory, under the scheduler's real core.

A scenario, a trace or a live cluster comes in; how available each owner was, and what that took, goes out.

    given/     is what a simulation begins with
    chance     draws numbers that depend on nothing but their names
    tally      sums up what became of owners
    outcome    is what runs with several seeds say together
    actors     is the owners and pods of a run
    policies   is the scheduler of each policy
    replay     is one run: events by time, and the scheduler after each instant
    simulate   is runs beside each other: policies, seeds, what-ifs
    plot       draws what came out
"""
