"""Cache ways and memory bandwidth, as the kernel's resctrl takes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from j10ce.errors import Finding, Invalid

AMD: Final = "AuthenticAMD"
AMD_WHOLE: Final = 2048  # no limit
AMD_UNITS: Final = 160  # eighths of a GB/s, of a die of 25 GB/s of which 0.8 can be had
INTEL_STEP: Final = 10


def ways(cbm: int) -> int:
    """How many ways a full mask has; raises Invalid unless it is contiguous from bit 0."""
    if cbm <= 0 or cbm & (cbm + 1):
        raise Invalid([Finding("cbm_mask", cbm, "not contiguous from bit 0", "expected as fff")])
    return cbm.bit_length()


def l3_mask(cbm: int, start_percent: int, end_percent: int) -> str:
    """The ways from one percentage to another, both rounded up, in hexadecimal digits; raises Invalid unless the
    range is one. A range that is narrower than a way may have none: the mask is 0 then, which the kernel refuses."""
    count = ways(cbm)
    if not 0 <= start_percent < end_percent <= 100:
        value = f"{start_percent} to {end_percent}"
        raise Invalid([Finding("catRange", value, "not a range", "use 0 to 100, the start below the end")])
    start, end = (-(-count * percent // 100) for percent in (start_percent, end_percent))
    return f"{(1 << end) - (1 << start):x}"


def mba_value(vendor: str, percent: int) -> str:
    """Memory bandwidth: of Intel in tens of percent, rounded up, of AMD in eighths of a GB/s; empty: not to be set."""
    if not 0 < percent <= 100:
        return ""
    if vendor == AMD:
        return str(AMD_WHOLE if percent == 100 else AMD_UNITS * percent // 100)
    return str(math.ceil(percent / INTEL_STEP) * INTEL_STEP)


def schemata(cache_ids: Iterable[int], mask: str, bandwidth: str) -> dict[str, str]:
    """The lines for a group, by resource; what is empty is not set."""
    ids = [*cache_ids]
    values = {"L3": dict.fromkeys(ids, mask), "MB": dict.fromkeys(ids, bandwidth)}
    return {name: line(name, per_cache) for name, per_cache in values.items() if any(per_cache.values())}


def line(name: str, per_cache: Mapping[int, str]) -> str:
    return f"{name}:{''.join(f'{cache}={value};' for cache, value in per_cache.items())}\n"


def pod_group(uid: str) -> str:
    """The group of a pod that has an annotation of its own."""
    return f"koordlet-{uid}"
