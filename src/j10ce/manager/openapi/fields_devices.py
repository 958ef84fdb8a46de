"""What every field about networks and disks means; docs/network.md has units, ranges and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEVICES: Final[Mapping[str, Mapping[str, str]]] = {
    "NetworkSection": {
        "": "Network traffic of a workload, on every managed link.",
        "class_": "Whose packets go first among those of one tier.",
        "floor": "Rate that it gets at least, each direction: 100Mbit, or percent of the slowest managed link.",
        "ceiling": "Rate that it gets at most, each direction.",
        "egress": "What it sends, where that differs.",
        "ingress": "What it receives, where that differs.",
    },
    "NetworkDirection": {
        "": "What leaves a workload, or what comes in.",
        "floor": "Rate that it gets at least, such as 100Mbit.",
        "ceiling": "Rate that it gets at most.",
    },
    "IoSection": {
        "": "Disk traffic of a workload.",
        "weight": "Its share of every disk.",
        "read_limit": "Bytes a second it may read, from each disk.",
        "write_limit": "Bytes a second it may write, to each disk.",
        "read_iops_limit": "Reads a second it may begin, on each disk.",
        "write_iops_limit": "Writes a second it may begin, on each disk.",
        "latency": "What it should wait for a request at most.",
    },
    "LinksSection": {
        "": "Network interfaces whose traffic is divided.",
        "take_over": "Whether queueing that somebody else set up is put aside; not set: no, it is reported.",
        "headroom_percent": "Percent of a link's own speed that stays free, so that queues are ours; 1 when not set.",
        "links": "What differs of single links, by name.",
    },
    "LinkOverlay": {
        "": "What an operator says of one link.",
        "managed": "Whether its traffic is divided; not set: if it is named here, or has the default route.",
        "egress": "What it carries outwards: 10Gbit, or percent of its own speed.",
        "ingress": "What it carries inwards; as egress when not set.",
        "take_over": "Whether queueing that somebody else set up there is put aside.",
    },
    "DisksSection": {
        "": "Block devices whose use is divided.",
        "disks": "What differs of single disks, by name, number or serial.",
    },
    "DiskOverlay": {
        "": "What an operator says of one disk.",
        "managed": "Whether its use is divided.",
        "read_bps": "Bytes a second that can be read from it; as calibrated when not set.",
        "write_bps": "Bytes a second that can be written to it; as calibrated when not set.",
        "read_iops": "Reads a second that it can do.",
        "write_iops": "Writes a second that it can do.",
    },
}
