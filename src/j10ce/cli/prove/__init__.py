"""Commands that measure this machine: `prove`, what each profile protects; `calibrate`, what a disk can do.

The name of a scenario or a disk comes in; figures go out, to the terminal and into files.

    prove       is the command
    occupied    knows who would be disturbed
    watching    shows a run while it lasts
    calibrate   is the other command
    places      says where on a disk it can be measured
    measuring   measures one thing after the other, and says how far it is
    direct_io   does it, beside the page cache
"""
