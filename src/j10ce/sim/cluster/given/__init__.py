"""What a simulation begins with: a scenario, a trace, a live cluster, and what is changed about it.

Text comes in; a Scenario and arrivals by time go out.

    scenario   is what can be said: nodes, classes, owners, starts, failures
    limits     says what its values may be
    source     reads it from YAML, every mistake with its line
    what_if    is a scenario with something else about it
    arrivals   says who comes when
    trace      reads that from CSV
    live       makes it of the objects of a cluster
"""
