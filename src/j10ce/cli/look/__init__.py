"""Commands that show what this host's agent does, and why.

Answers of the agent come in; sentences, tables and a live screen go out.

    explain   says why a workload's settings are what they are
    status    shows what the agent is doing
    top       shows what workloads use and were promised
    live      keeps a screen up to date, and reads keys
"""
