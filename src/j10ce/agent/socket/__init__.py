"""What people, hooks and the command line ask of a running agent.

Requests on a unix socket come in; listings, explanations and changes of the ring go out.

    serve         opens the sockets, and knows who calls
    routes        is the table of routes
    operations    is what the routes do
    admission     checks who may be placed or adopted, and as what
    left_limits   finds limits that a process leaves when it is moved
    whereabouts   finds where workloads are on this machine
    turns         says whose turn it is at what costs much
    holding       makes and ends holds
    minimum       says whether a workload has its own minimum
    shortfall     says what was asked for and is not in force
    evicting      says who has to give way, and how far that has gone
    answers       shows a report as listings, usage and status
"""
