"""Memory: how much of it is protected, and how much best effort leaves to others.

A Snapshot comes in; proposals for memory.min, memory.low and memory.high, and reclaims, go out.

    protection   says how much memory of a workload is protected
    parts        hands that on to the parts of a workload
    page_cache   limits page cache, and says what kernels of some vendors are told
    qos          sets protection as percentages of the request
    steps        is the law of taking memory back
    reclaim      takes back what nobody uses, or what is above a mark
    oom          says who goes first when memory runs out
    cap          keeps best effort off what was promised to others
"""
