"""Commands about this host: what runs here, what it gets, and why.

Options come in; requests to this host's agent go out, and their answers are printed.

    up            runs the whole stack in the foreground
    launch        starts our own processes
    left_over     finds commands that outlived their agent
    doctor        says what this machine can enforce
    gate          holds a command back until it is managed
    memory_kill   says whether the kernel ended a command at its memory limit
    workloads     is run, adopt and forget
    steer         is hold, release, arm, disarm and revert
    plan          says what would be written
    config        checks the files of this host
    plugins       lists controllers
    bundle        collects what a bug report needs
"""
