"""j10ce-qos-scheduler: the core with a cluster around it. The one room of the scheduler that does I/O.

Objects of an API server come in; bindings, evictions, conditions and events go out.

    options    is the command line
    installed  finds the plugins of other distributions
    clock      is seconds that never go back
    cluster/   follows a cluster into the core
    metrics    counts
    hands      carries out what was decided
    deciding   has the core decide while this replica leads
    history    keeps accounts over restarts, and shows them
    departures logs pods that have left their slots, as CSV
    page       answers over HTTP: the debug page, health, metrics
    compose    makes the core of a configuration
    process    puts one replica together
    main       starts and ends it
"""
