"""The process around the scheduler: everything that touches the machine or asks somebody else.

Files and installed distributions come in; a scheduler that is set up goes out.

    installed   finds the plugins of other distributions
"""
