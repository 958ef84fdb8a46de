"""Whose class is which, in a tree of ours: the table of names that its program holds."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from j10ce.host.net import bpf, queues
from j10ce.host.net.netlink import Netlink
from j10ce.model.knob import TargetId

MAJOR: Final = 0x10CE
HANDLE: Final = MAJOR << 16
NAMES, CLASSES, DOORS, FLOWS = "j10ce_names", "j10ce_classes", "j10ce_doors", "j10ce_flows"
RECORD: Final = struct.Struct("=QI368sI")  # the cgroup's id, how deep it lies, the target, its door
NUMBER: Final = struct.Struct("=I")
MOST_TEXT: Final = 367
ON_PROBATION: Final = 0  # the record that stands in a tree until traffic has been seen to pass
HOOK_IS_OURS: Final = 1  # that we made the place where the program hangs that sends packets there
FIRST: Final = 0x10  # class of a share or a workload; below are such records, and the classes that every tree has


class ClassName(NamedTuple):
    minor: int
    cgroup: int  # whose sockets it is for; a share has none of its own
    level: int  # how deep that lies
    target: TargetId
    door: int = 0  # the link by which it comes out of a network of its own


def is_ours(root: queues.LinkQueue | None) -> bool:
    return root is not None and root.kind == "htb" and root.handle == HANDLE


def tables(netlink: Netlink, link: int) -> dict[str, bpf.Map]:
    """What the filter of a tree holds; empty where one is missing, or nothing may be seen of it."""
    asked = [f for f in queues.filters(netlink, link, HANDLE) if queues.program(f)]
    try:
        maps = bpf.maps_of(queues.program(asked[0])) if asked else {}
    except OSError:
        return {}
    return maps if {NAMES, CLASSES} <= maps.keys() else {}


def names(table: bpf.Map) -> Iterator[ClassName]:
    for key, value in table.items():
        (minor,), (cgroup, level, text, door) = NUMBER.unpack(key), RECORD.unpack(value)
        if minor >= FIRST:
            yield ClassName(minor, cgroup, level, TargetId(text.partition(b"\0")[0].decode(errors="replace")), door)
