"""The limit of page cache, where the kernel has one: files of cgroup v2 alone."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from j10ce.dialects.koordinator.config.qos import MemoryFields

ENABLE: Final = "memory.pagecache_limit.enable"
SIZE: Final = "memory.pagecache_limit.size"
SYNC: Final = "memory.pagecache_limit.sync"


def page_cache_limit(fields: MemoryFields, limit: int | None, cgroup_version: int) -> dict[str, int]:
    """A size beats a percentage and is at most the memory limit; it switches the limit on, and none switches it off,
    unless the switch is set. What nobody said is not written."""
    values: dict[str, int] = {}
    if cgroup_version != 2:
        return values
    size = _size(fields, limit)
    if size is not None:
        values |= {ENABLE: int(size > 0), SIZE: size}
    if fields.page_cache_enable is not UNSET:
        values[ENABLE] = int(fields.page_cache_enable)
    if fields.page_cache_reclaim_sync is not UNSET:
        values[SYNC] = int(fields.page_cache_reclaim_sync)
    return values


def _size(fields: MemoryFields, limit: int | None) -> int | None:
    if fields.page_cache_limit_size is not UNSET:
        return fields.page_cache_limit_size if limit is None else min(fields.page_cache_limit_size, limit)
    if fields.page_cache_limit_percent is not UNSET and limit is not None:
        return limit * fields.page_cache_limit_percent // 100
    return None
