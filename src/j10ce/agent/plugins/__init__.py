"""Controllers of other distributions, in a process that may fail without touching the ring.

Snapshots come in; proposals go out, or a reason why there are none.

    wire      is what crosses the pipe
    child     is the process that asks each controller
    process   starts it, asks it and never waits for it
"""
