"""The back end of cgroup files, v1 and v2.

Knobs and values come in; files are written, and what they hold comes back.

    spelling   is the vocabulary of the two tables
    v1         spells every knob as cgroup v1 does
    v2         spells every knob as cgroup v2 does
    vendor     spells those that only kernels of some vendors have
    files      is the back end: each knob in the version that its controller is mounted as
    deeds      takes memory back, and ends all inside
    tree       makes and removes cgroups as directories
"""
