"""The nouns every stage shares. Frozen data and pure functions: no I/O, no clock.

Text and plain data come in; typed values go out, and text again.

    bounds      says how much any input may hold
    quantity    is an amount as people write it
    resource    is a vector of amounts
    parts/      is what kinds are made of
    kube/       is Kubernetes' own objects, as far as we read them
    kinds       is the public objects
    catalogue   is the table of kinds
    controls/   describes every kernel control once
    knob        is the address of a value, and how people read and write it
    machine/    is what a machine is
    workload    is a workload on a node, and what policy entitles it to
    snapshot    is everything that a decision may look at
    plan        leads from a Proposal to an Outcome
    schema      turns text into objects and back
    stored      is what every store tells of objects
    placement   is what `place` answers
    text/       is values as people read them
"""
