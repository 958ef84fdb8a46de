"""Settings of the whole machine. What is out of range is not written: the present value stays."""

from __future__ import annotations

from typing import Final

LEAST_FREE_KB: Final = 10_240
MOST_FREE_KB: Final = 10_485_760
FACTOR: Final = 10_000
WATERMARKS: Final = range(10, 401)


def min_free_kbytes(memory: int, factor: int | None, previous_kb: int) -> int:
    """vm.min_free_kbytes: ten-thousandths of the memory, in KiB."""
    if factor is None or factor <= 0:
        return previous_kb
    wanted = memory // 1024 * factor // FACTOR
    return wanted if LEAST_FREE_KB <= wanted <= MOST_FREE_KB else previous_kb


def watermark_scale_factor(wanted: int | None, previous: int) -> int:
    """vm.watermark_scale_factor."""
    return wanted if wanted is not None and wanted in WATERMARKS else previous


def switch(wanted: int | None, previous: int) -> int:
    """Of memcg's reaper, group identity, the limit of page cache: 0 or 1."""
    return wanted if wanted in (0, 1) and wanted is not None else previous
