"""`prove`: what each profile protects, on this machine.

The name of a scenario comes in; figures go out, to the terminal and into two files.

    prove       is the command
    occupied    knows who would be disturbed
    watching    shows a run while it lasts
"""
