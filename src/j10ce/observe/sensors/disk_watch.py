"""The disks of this machine as they come, go and are mounted: the kernel says when to look again."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from j10ce.model.machine.disk import Disk
from j10ce.model.snapshot import NodeFacts

LOOK_S: Final = 60.0  # also looked at so often: nothing is said of another scheduler, nor in some containers
CLOSEST_S: Final = 2.0  # a node of Kubernetes mounts all the time
_KOBJECT_UEVENT: Final = 15  # a family of netlink
_FROM_KERNEL: Final = 1  # its group
_BLOCK: Final = b"\0SUBSYSTEM=block\0"
_MOST: Final = 256  # messages taken at once
MOUNTINFO: Final = "/proc/self/mountinfo"


class DiskWatch:
    """Asked on every tick; looks at the machine only when something happened to disks or mounts."""

    def __init__(
        self,
        look: Callable[[], Mapping[str, Disk]],
        clock: Callable[[], float],
        events: Callable[[], socket.socket | None] | None = None,
        changed: Callable[[], bool] | None = None,
    ) -> None:
        """`changed`: whether something else is known of disks."""
        self._look = look
        self._changed = changed or (lambda: False)
        self._clock = clock
        self._socket = (events or open_events)()
        self._mounts = _Mounts()
        self._disks: Mapping[str, Disk] = {}
        self._looked = float("-inf")
        self._due = True

    def seen(self, facts: NodeFacts) -> NodeFacts:
        """The same object, unless something is different."""
        disks = self._present(self._clock())
        return facts if disks is facts.disks or disks == facts.disks else replace(facts, disks=disks)

    def _present(self, now: float) -> Mapping[str, Disk]:
        if self._happened() or self._mounts.changed() or self._changed():
            self._due = True
        since = now - self._looked
        if (self._due and not 0 <= since < CLOSEST_S) or not 0 <= since < LOOK_S:
            self._due, self._looked = False, now
            if (disks := self._look()) != self._disks:
                self._disks = disks
        return self._disks

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._mounts.close()

    def _happened(self) -> bool:
        """Takes every message that waits; whether one of them was about a disk, or some were lost."""
        about_disks, events = False, self._socket
        for _ in range(_MOST):
            if events is None:
                break
            try:
                message = events.recv(8192)
            except BlockingIOError:
                break
            except OSError:  # ENOBUFS: more than it could keep
                return True
            about_disks = about_disks or _BLOCK in message
        return about_disks


class _Mounts:
    """The kernel marks an open mountinfo when a mount comes or goes."""

    def __init__(self) -> None:
        self._fd, self._poll = -1, select.poll()
        try:
            self._fd = os.open(MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
            self._poll.register(self._fd, select.POLLPRI | select.POLLERR)
        except OSError:
            self.close()

    def changed(self) -> bool:
        return self._fd >= 0 and bool(self._poll.poll(0))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def open_events() -> socket.socket | None:
    """What the kernel says of devices; None where it may not be heard."""
    try:
        events = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, _KOBJECT_UEVENT)
    except OSError:
        return None
    try:
        events.bind((0, _FROM_KERNEL))
    except OSError:
        events.close()
        return None
    return events
