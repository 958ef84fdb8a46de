"""What koordlet does on a node, literally, as numbers: one pure function for each law, its defects included where a
docstring says so. What we do otherwise is compared with these.

Usages, strategies and topology come in; values for cgroup files, CPUs, amounts to free and victims go out.

    conversions     translate between cgroup v1 and v2, and from amounts to both
    suppress        says how much CPU best effort may use, and makes a quota of it
    suppress_cpus   chooses the CPUs of best effort
    evict           says how much is to be freed by eviction
    victims         says who is evicted, in which order
    memory          is memory QoS of containers, pods and classes
    page_cache      limits page cache
    burst           is CPU burst: saved up, by quota, and its token bucket
    identity        is group identity, and who shares a core with whom
    runtime         is what a container gets when it starts: batch amounts, CPUs, normalised quota
    resctrl         is cache ways and memory bandwidth
    sysctl          is settings of the whole machine
"""
