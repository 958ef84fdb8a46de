"""What a machine is, apart from what runs on it.

What was read of a machine comes in; facts that decisions look at go out.

    topology   says which CPUs share a core, a cache, a memory node, a socket
    cache      says what the CPU lets us divide of its caches and bandwidth
    link       is a network interface
    disk       is a block device
    calibration is what was measured of one
    facts      is all that is known of the machine itself
"""
