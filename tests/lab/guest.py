"""The scripts of the guest.  They lie on /mnt, a directory that host and guest share.

boot.sh (mounts, then the cgroup layout or systemd) is the first process; command.sh runs the command and powers off.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from enum import Enum


class Cgroup(Enum):
    V2 = "v2"
    V1 = "v1"
    HYBRID = "hybrid"
    SYSTEMD = "systemd"  # systemd is the first process and owns a v2 tree


MOUNTS = r"""
. /mnt/env.sh
mkdir -p /dev/pts /dev/shm; mount -t devpts devpts /dev/pts; mount -t tmpfs shm /dev/shm
mkdir -p "/lib/modules/$(uname -r)" && mount --bind "$LAB_MODULES" "/lib/modules/$(uname -r)"
mount -t tmpfs tmp /tmp -o mode=1777; mount -t tmpfs run /run -o mode=755
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
mkdir -p "$LAB_CLONE"
mount -t 9p -o ro,cache=loose,trans=virtio,version=9p2000.L,msize=512000 clone "$LAB_CLONE"
ip link set lo up 2>/dev/null
hostname j10ce-lab
"""

LAYOUT = {
    # A value written to the root's subtree_control also makes per-cgroup perf events work.
    Cgroup.V2: r"""
mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup
echo "+cpuset +cpu +io +memory +pids" > /sys/fs/cgroup/cgroup.subtree_control
. /mnt/command.sh
""",
    Cgroup.V1: r"""
mount -t tmpfs cgroup /sys/fs/cgroup -o mode=755
for c in cpu,cpuacct cpuset memory blkio pids freezer devices; do
    mkdir /sys/fs/cgroup/$c; mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c
done
. /mnt/command.sh
""",
    Cgroup.HYBRID: r"""
mount -t tmpfs cgroup /sys/fs/cgroup -o mode=755
for c in cpu,cpuacct cpuset freezer; do mkdir /sys/fs/cgroup/$c; mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c; done
mkdir /sys/fs/cgroup/unified
mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup/unified
echo "+io +memory +pids" > /sys/fs/cgroup/unified/cgroup.subtree_control
. /mnt/command.sh
""",
    # What the machine's own units want is deleted, in the overlay only, so that multi-user.target brings up just
    # our unit and what it wants.  /.dockerenv would make systemd believe that it is in a container; an empty
    # machine-id, that this is a first boot; a oneshot unit would leave the system "starting" for ever.
    Cgroup.SYSTEMD: r"""
rm -rf /lib/systemd/system/*.wants /lib/systemd/system-generators /etc/systemd/system/*.wants /.dockerenv
echo j10ce-lab > /etc/hostname
[ -s /etc/machine-id ] || echo 0123456789abcdef0123456789abcdef > /etc/machine-id
mkdir -p /run/systemd/system/multi-user.target.wants && cd /run/systemd/system
cat > lab.service <<EOF
[Unit]
Wants=dbus.service systemd-journald.service
After=dbus.service systemd-journald.service
[Service]
Type=exec
ExecStart=/bin/bash -c ". /mnt/env.sh; systemctl is-system-running --wait >/dev/null; . /mnt/command.sh"
ExecStopPost=/bin/busybox poweroff -f
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
OOMPolicy=continue
EOF
ln -s ../lab.service multi-user.target.wants/lab.service
exec env -i /lib/systemd/systemd --unit=multi-user.target
""",
}

COMMAND = r"""
touch /mnt/booted
cd "$LAB_CLONE"
/bin/bash /mnt/payload.sh </dev/null; status=$?
echo $status > /mnt/status; sync
exec /bin/busybox poweroff -f
"""

BASE_ENV = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "COLUMNS": "120",
}


def scripts(cgroup: Cgroup, command: Sequence[str], env: Mapping[str, str]) -> dict[str, str]:
    """File name to content, for the shared directory."""
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in {**BASE_ENV, **env}.items())
    return {
        "env.sh": exports,
        "boot.sh": MOUNTS + LAYOUT[cgroup],
        "command.sh": COMMAND,
        "payload.sh": f"exec {shlex.join(command)}\n",
    }
