"""The kernel lab: run tests under a stock Debian kernel, in a QEMU guest, without KVM.

    kernel.py      fetch a Debian kernel once, keep it outside the clone
    own_kernel.py  build a kernel with core scheduling once, of Debian's source
    initrd.py      the few modules and the script that reach the shared root file system
    guest.py       the scripts that the guest runs: mounts, cgroup layout, systemd, the command
    machine.py     start QEMU, pass its console on, return the command's exit status
    debian.py      programs out of Debian packages, unpacked and never installed
    archive.py     container images as one archive
    image.py       the images of build/, made without an engine
    kube/          a Kubernetes control plane and a node, on this machine

The guest sees this machine's root file system read-only (writes go to memory), the clone at its own path, and an
empty /tmp.  So it runs the clone's own venv; it is about 16 times slower than the host, so keep imports light.
"""
