"""Hardware that the machine of a test may lack, in memory.

What a test says comes in; what the hardware would answer goes out.

    counters   is cycles and instructions of cgroups
"""
