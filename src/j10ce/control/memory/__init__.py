"""Memory: how much of it is protected, and how much best effort leaves to others.

A Snapshot comes in; proposals for memory.min, memory.low and memory.high go out.

    protection   says how much memory of a workload is protected
    parts        hands that on to the parts of a workload
    qos          sets protection as percentages of the request
    cap          keeps best effort off what was promised to others
"""
