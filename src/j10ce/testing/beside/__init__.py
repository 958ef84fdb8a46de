"""Fakes of what is beside cgroups, by the rules of the kernel.

An empty folder comes in; a machine with tasks and caches goes out.

    fake_tasks     is tasks that fork, end, move and hand their numbers on, with cookies of core scheduling
    fake_machine   is threads that run by their policies, as the keeper of real-time floors sees them
    fake_disks     is the controller of disks
    fake_resctrl   is the file system of cache groups
"""
