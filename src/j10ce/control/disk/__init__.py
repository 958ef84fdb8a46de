"""Disks: what is said of them, and floors of those who were promised something.

A Snapshot comes in; caps, weights and latencies by disk go out.

    places   says where caps, weights and models work
    said     is what profiles, overlays and limits say
    weights  divides a disk whose io.cost is calibrated by weight, so that floors hold
    follow   is the law for all other disks: caps on others that follow what is measured, and end with it
    inside   passes caps of a pod on to its containers, where the kernel does not
    ways     says which of these is there for each disk
    shown    is what disks do and what one workload has there, for people
    disk     is the controller
"""
