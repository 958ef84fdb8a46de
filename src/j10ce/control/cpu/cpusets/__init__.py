"""Which CPUs workloads run on.

A Snapshot comes in; proposals for CPU sets go out.

    owners     knows the CPU sets that others chose
    nearest    picks CPUs that belong together
    reserved   gives whole CPUs to floors of whole CPUs
"""
