"""What kinds are made of.

Fields of objects come in as plain data; frozen structs go out.

    strict     says how every struct at the border is read and written
    sections   is what a profile may say, one section per resource
    devices    is what a strategy may say of links and disks
    strategy   is what a strategy may say of nodes, one section per concern
    progress   says how far a policy has come on the nodes
    reported   is what a node reports in detail
    totals     is what a node reports in sum
"""
