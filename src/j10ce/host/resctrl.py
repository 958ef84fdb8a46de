"""What /sys/fs/resctrl says that it can divide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from j10ce.host.files import read_whole
from j10ce.model.machine.cache import Bandwidth, BandwidthUnit, CacheControl, Ways

ROOT: Final = "/sys/fs/resctrl"
SCHEMATA: Final = "schemata"
CACHES: Final = ("L3", "L3CODE", "L3DATA")  # the latter two where the file system was mounted with cdp
BANDWIDTH: Final = "MB"
AMD: Final = "AuthenticAMD"
AMD_MOST: Final = 2048  # eighths of a GB/s: no limit, unless the root's says more
MBPS_MOST: Final = (1 << 32) - 1

Read = Callable[[str], str | None]  # a file below the root of the file system; None: it is not there


def discover(root: str = ROOT, proc: str = "/proc") -> CacheControl:
    """Of this machine; nothing where the file system is not mounted."""

    def read(path: str) -> str | None:
        content = read_whole(f"{root}/{path}")
        return None if content is None else content.decode(errors="replace")

    cpuinfo, mounts = ((read_whole(f"{proc}/{name}") or b"").decode(errors="replace") for name in ("cpuinfo", "mounts"))
    return examine(read, amd=AMD in cpuinfo, in_mbps=_in_mbps(mounts))


def examine(read: Read, *, amd: bool = False, in_mbps: bool = False) -> CacheControl:
    """`amd`: the CPU counts bandwidth in eighths of a GB/s; `in_mbps`: the kernel was asked to count it in MB/s."""
    lines = dict(schemata(read(SCHEMATA) or ""))
    cache = next((name for name in CACHES if name in lines), "")
    unit: BandwidthUnit = "MB/s" if in_mbps else "eighths of GB/s" if amd else "percent"
    closids = [n for name in lines if (n := _number(read(f"info/{name}/num_closids"))) is not None]
    return CacheControl(
        ways=_ways(read, cache, tuple(lines[cache])) if cache else None,
        bandwidth=_bandwidth(read, lines[BANDWIDTH], unit) if BANDWIDTH in lines else None,
        groups=max(0, min(closids, default=1) - 1),
    )


def schemata(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """(resource, value by cache) of each line that can be read: `L3:0=ff;1=ff`."""
    for line in text.splitlines():
        name, colon, values = line.strip().partition(":")
        pairs = [item.strip().partition("=") for item in values.split(";") if item.strip()]
        if name and colon and pairs and all(i.isdecimal() and eq and v.strip() for i, eq, v in pairs):
            yield name, {i: v.strip() for i, _, v in pairs}


def mask(ways: Iterable[int]) -> str:
    """As the kernel takes it: hexadecimal, the first way is the lowest bit."""
    return f"{sum(1 << way for way in ways):x}"


def of_mask(text: str) -> frozenset[int]:
    """Raises ValueError where it is none."""
    bits = int(text, 16)
    if bits < 0:
        raise ValueError(f"a mask below zero: {text!r}")
    return frozenset(n for n in range(bits.bit_length()) if bits >> n & 1)


def _ways(read: Read, name: str, caches: tuple[str, ...]) -> Ways | None:
    full = (read(f"info/{name}/cbm_mask") or "").strip()
    try:
        count = len(of_mask(full))
    except ValueError:
        return None
    least = _number(read(f"info/{name}/min_cbm_bits"))
    sparse = (read(f"info/{name}/sparse_masks") or "").strip() == "1"
    return Ways(caches, count, 1 if least is None else max(1, least), sparse) if count else None


def _bandwidth(read: Read, values: dict[str, str], unit: BandwidthUnit) -> Bandwidth:
    least, step = _number(read("info/MB/min_bandwidth")), _number(read("info/MB/bandwidth_gran"))
    present = max((int(v) for v in values.values() if v.isdecimal()), default=0)
    most = {"percent": 100, "eighths of GB/s": max(AMD_MOST, present), "MB/s": MBPS_MOST}[unit]
    return Bandwidth(tuple(values), unit, 1 if least is None else max(1, least), max(1, step or 1), most)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdecimal() else None


def _in_mbps(mounts: str) -> bool:
    rows = (line.split() for line in mounts.splitlines())
    return any(len(row) > 3 and row[2] == "resctrl" and "mba_MBps" in row[3].split(",") for row in rows)
