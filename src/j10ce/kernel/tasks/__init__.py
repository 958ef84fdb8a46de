"""The back end of knobs that are said of all tasks of a workload: its threads, or its processes.

One value of a workload comes in; every task of it has it, also those that come later.

    roll      lists the tasks of a workload
    trait     is the seam: what one knob is to a task
    handout   brings a value to all tasks, and to newcomers
    backend   is the back end: one value for all, each task's own back in the end
    cookie    is the trait of core scheduling
    oom       is the trait of who is killed first
    prctl     asks the kernel for the cookies of core scheduling
"""
