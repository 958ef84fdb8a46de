"""What other distributions bring: controllers, in a process that may fail without harm; sensors and back ends.

Snapshots come in; proposals go out, or a reason why there are none.

    installed   finds them by their entry points
    inline      runs sensors and back ends in the agent itself
    wire        is what crosses the pipe
    child       is the process that asks each controller
    process     starts it, asks it and never waits for it
"""
