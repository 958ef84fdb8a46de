"""Fakes and conformance suites for tests of ours and of others.

Short descriptions come in; objects, trees and machines in memory go out.

    build                 builds objects with sensible defaults
    clock                 is a clock that a test moves
    cgroup_tree           writes a cgroup tree to disk
    fake_kernel           is a kernel over cgroups in memory, that of simulated machines
    fake_estate           is a kind of target beside cgroups
    beside/               is fakes of what is beside cgroups
    hardware/             is hardware in memory
    fake_systemd          is a systemd in memory
    conformance_kernel    is what every back end must do
    conformance_disks     is what every controller of disks must do
    conformance_plugins   is what every sensor and back end of a plugin must do
    conformance_store     is what every store must do
    conformance_elector   is what every elector must do
    conformance_ledger    is what every ledger must do
"""
