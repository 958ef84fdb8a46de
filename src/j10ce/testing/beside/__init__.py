"""Fakes of what is beside cgroups, by the rules of the kernel.

An empty folder comes in; a machine with tasks goes out.

    fake_tasks   is tasks that fork, end, move and hand their numbers on, with cookies of core scheduling
"""
