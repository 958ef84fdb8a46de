"""Why a setting has its value, for programs and for people. Pure.

A Snapshot and a Plan come in; an Explanation goes out, and lines of text.

    explain   says why a setting has its value
    text      shows that in a terminal
"""
