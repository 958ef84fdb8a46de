"""The back end of systemd: units, their properties and the tree that they make.

Knobs, values and cgroups to make come in; calls over D-Bus go out.

    dbus         calls systemd, synchronously
    units        knows how units are named and where their cgroups are
    spelling     spells a knob as a property of a unit
    properties   is the back end for knobs that systemd knows
    disks        is the back end for disks, which systemd has files for where it is asked to
    tree         makes slices and scopes instead of directories
"""
