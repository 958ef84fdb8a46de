"""Who is entitled to what. Pure: objects and workloads in, entitlements and findings out.

document   the objects that concern one node          validate   what is wrong with an object
choose     which profile a workload runs under        profiles   those that are built in
claims     who asks for a floor, and who pays         ledger     what is promised, and what is left
resolve    all of it: entitlements of a node          effective  what floors are worth in the kernel
"""
