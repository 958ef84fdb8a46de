"""What the CPU lets us divide: ways of the last-level cache, and memory bandwidth."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

BandwidthUnit = Literal["percent", "eighths of GB/s", "MB/s"]


class Ways(Struct, frozen=True):
    """Of each last-level cache."""

    caches: tuple[str, ...]  # their ids, as the kernel writes them
    count: int
    least: int = 1  # that a group must have
    sparse: bool = False  # a group may have ways that are not neighbours


class Bandwidth(Struct, frozen=True):
    """To memory, through each last-level cache."""

    caches: tuple[str, ...]
    unit: BandwidthUnit = "percent"
    least: int = 10
    step: int = 10
    most: int = 100  # no limit


class CacheControl(Struct, frozen=True):
    """None of a resource: the CPU, the kernel or a mount that is missing does not let us divide it."""

    ways: Ways | None = None
    bandwidth: Bandwidth | None = None
    groups: int = 0  # that there can be besides the root's, whoever makes them
