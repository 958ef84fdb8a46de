"""What a NodeStrategy may say of links and disks of its nodes, by name."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType, field

from j10ce.model.bounds import Word
from j10ce.model.parts.strict import Strict
from j10ce.model.quantity import Quantity

MOST_DEVICES: Final = 64  # that one strategy speaks of


class LinkOverlay(Strict, frozen=True, kw_only=True):
    """One network interface; what is not said is as the machine has it."""

    managed: bool | UnsetType = UNSET  # whether its traffic is divided; UNSET: if it has the default route
    egress: Quantity | UnsetType = UNSET  # what it carries: bits per second, or percent of its own speed
    ingress: Quantity | UnsetType = UNSET
    take_over: bool | UnsetType = UNSET  # put queueing aside that somebody else set up


class LinksSection(Strict, frozen=True, kw_only=True):
    """Network interfaces whose traffic is divided."""

    take_over: bool | UnsetType = UNSET  # of every link of which nothing else is said
    headroom_percent: int | UnsetType = UNSET  # of a device's own speed, left so that queues are here and not there
    links: Annotated[dict[Word, LinkOverlay], Meta(max_length=MOST_DEVICES)] = field(default_factory=dict)


class DiskOverlay(Strict, frozen=True, kw_only=True):
    """One block device; what is not said is as it was calibrated."""

    managed: bool | UnsetType = UNSET  # whether what uses it is divided
    read_bps: Quantity | UnsetType = UNSET  # what it can do: bytes per second
    write_bps: Quantity | UnsetType = UNSET
    read_iops: int | UnsetType = UNSET
    write_iops: int | UnsetType = UNSET


class DisksSection(Strict, frozen=True, kw_only=True):
    """Block devices whose use is divided, by name, number (`8:0`) or serial."""

    disks: Annotated[dict[Word, DiskOverlay], Meta(max_length=MOST_DEVICES)] = field(default_factory=dict)
