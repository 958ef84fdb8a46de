"""What `resource-qos-config` may not say, field beside field and class beside class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET, UnsetType

from j10ce.dialects.koordinator.config.qos import BlkioFields, ClassQos, NetworkQos, ResctrlQos, ResourceQos
from j10ce.errors import Finding, Invalid
from j10ce.model.quantity import Quantity

NETWORK_CLASSES: Final = ("lsrClass", "lsClass", "beClass", "systemClass")
RATES: Final = {
    "ingressRequest": "ingress_request",
    "ingressLimit": "ingress_limit",
    "egressRequest": "egress_request",
    "egressLimit": "egress_limit",
}


def findings(strategy: ResourceQos) -> Iterator[Finding]:
    for name, own in classes(strategy):
        if own.resctrl_qos is not UNSET:
            yield from _cache(f"{name}.resctrlQOS", own.resctrl_qos)
        if own.blkio_qos is not UNSET:
            yield from blocks(f"{name}.blkioQOS", own.blkio_qos)
    yield from network(strategy)


def classes(strategy: ResourceQos) -> Iterator[tuple[str, ClassQos]]:
    named: dict[str, ClassQos | UnsetType] = {
        "lsrClass": strategy.lsr_class,
        "lsClass": strategy.ls_class,
        "beClass": strategy.be_class,
        "systemClass": strategy.system_class,
        "cgroupRoot": strategy.cgroup_root,
    }
    yield from ((name, own) for name, own in named.items() if own is not UNSET)


def _cache(path: str, cache: ResctrlQos) -> Iterator[Finding]:
    start, end = cache.cat_range_start_percent, cache.cat_range_end_percent
    if start is not UNSET and end is not UNSET and start >= end:
        yield Finding(f"{path}.catRangeStartPercent", start, f"not below catRangeEndPercent, {end}", "use less")


def blocks(path: str, disks: BlkioFields) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    for n, block in enumerate(disks.blocks):
        if not block.name:
            yield Finding(f"{path}.blocks[{n}].name", "", "missing", "name a device or volume, such as /dev/vda")
        if (block.type, block.name) in seen:
            yield Finding(f"{path}.blocks[{n}].name", block.name, "there is such a block already", "write it once")
        seen.add((block.type, block.name))


def network(strategy: ResourceQos, total: Quantity | None = None) -> Iterator[Finding]:
    """One format for all classes; no percentage above 100; requests fit into the whole, `total` bits per second."""
    written = [*_rates(strategy)]
    kinds = {type(value) for _, value in written}
    if len(kinds) > 1:
        mixed, word = next((p, v) for p, v in written if isinstance(v, str))
        yield Finding(mixed, word, "percentages and quantities are mixed", "use numbers alone, or quantities alone")
        return
    for path, value in written:
        yield from _rate(path, value)
    for direction in ("ingress", "egress"):
        asked = [value for path, value in written if path.endswith(f"{direction}Request")]
        yield from _sum(direction, asked, total)


def _rates(strategy: ResourceQos) -> Iterator[tuple[str, int | str]]:
    for name, own in classes(strategy):
        if name in NETWORK_CLASSES and isinstance(own.network_qos, NetworkQos):
            for field, attribute in RATES.items():
                value: int | str | UnsetType = getattr(own.network_qos, attribute)
                if value is not UNSET:
                    yield f"{name}.networkQOS.{field}", value


def _rate(path: str, value: int | str) -> Iterator[Finding]:
    if isinstance(value, int):
        if not 0 <= value <= 100:
            yield Finding(path, value, "out of range", "use 0 to 100 percent, or a quantity such as 50M")
    elif quantity(value) is None:
        yield Finding(path, value, "not a quantity", "write bits per second, such as 50M, or a percentage as a number")


def _sum(direction: str, asked: list[int | str], total: Quantity | None) -> Iterator[Finding]:
    percent = sum(value for value in asked if isinstance(value, int))
    if percent > 100:
        yield Finding(
            f"networkQOS.{direction}Request", percent, "all classes together ask for more than 100", "use less"
        )
    amounts = [q.amount for value in asked if isinstance(value, str) and (q := quantity(value)) is not None]
    if total is not None and total.amount and sum(amounts) > total.amount:
        hint = f"use less than totalNetworkBandwidth, {total}, together"
        value = str(Quantity(sum(amounts)))
        yield Finding(f"networkQOS.{direction}Request", value, "all classes together ask for more than there is", hint)


def quantity(text: str) -> Quantity | None:
    """An amount that is no percentage; None where it is none."""
    try:
        read = Quantity.parse(text)
    except Invalid:
        return None
    return None if read.percent else read
