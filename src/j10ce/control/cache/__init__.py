"""Who fills which part of the last-level cache, and how much of the bandwidth to memory it has.

Sections `cache` of profiles, strategies and annotations come in; groups, their values and who is in them go out.

    shares   turns percentages into ways and into what the CPU counts bandwidth in
    groups   says which groups there are, and who shares one when the CPU has too few
    cache    is the controller
"""
