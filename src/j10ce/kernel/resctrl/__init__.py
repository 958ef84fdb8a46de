"""Groups of the resctrl file system: who may fill which ways of the last-level cache, and how much bandwidth it has.

Groups, their values and the tasks inside come in; folders and files below /sys/fs/resctrl go out.

    files        reads, writes, makes and removes what is below the root
    estate       says which groups there are, makes and removes ours
    schemata     is the back end of ways and bandwidth
    membership   is the trait of tasks: which group they are in
"""
