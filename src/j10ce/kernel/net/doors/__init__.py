"""Doors: links of this machine, each the way into a network namespace of somebody's own, such as a pod's.

What comes out of such a namespace is forwarded, and has no socket by the time that it waits for the link by which it
leaves. What is left is by which link it came in. A bridge or a tunnel on the way takes that away; then a number is
left that the packet has been stamped with at the door.

    stamps  sets up, finds and takes away the program that stamps
    flows   knows conversations of theirs, and so what comes back to them
"""
